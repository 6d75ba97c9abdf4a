// SPDX-License-Identifier: Apache-2.0
#include "file/server/delegations.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <random>
#include <system_error>

#include <wherry/error.hpp>

#include "file/server/tree.hpp"

namespace wherry::file {
namespace {

using namespace std::chrono_literals;

/// How soon a program of the host that opens a file for writing is noticed.
constexpr auto kPause = 10ms;
/// A client counts from when it asks, and its kernel from when it hears: this much later all have ended.
constexpr auto kMargin = 150ms;
constexpr std::chrono::milliseconds kTime(layout::kFileDelegationMs);
/// Files that are read again and again at one time. Each takes a descriptor and is looked at every 10 ms.
constexpr std::size_t kMostLeases = 256;

/// Another description of the file, with a lease on it. Invalid where that cannot be had.
UniqueFd lease_on(int descriptor) {
  UniqueFd made = open_again(descriptor, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (!made.valid()) return {};
  // Of all signals this one does nothing by default. SIGIO would end the process.
  if (::fcntl(made.get(), F_SETSIG, SIGURG) != 0 || ::fcntl(made.get(), F_SETLEASE, F_RDLCK) != 0) return {};
  return made;
}

/// Whether no open waits for its end.
bool is_whole(const UniqueFd& lease) { return ::fcntl(lease.get(), F_GETLEASE) == F_RDLCK; }

}  // namespace

Delegations::Client::Client(Delegations& delegations)
    : delegations_(delegations), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.valid()) throw Error(errno, "serve", "", "raise the limit of open files (ulimit -n)");
  recalls_.reserve(layout::kFileMaxIdentities + kMostLeases);
  number_ = delegations_.add(*this);
}

Delegations::Client::~Client() {
  const std::lock_guard lock(delegations_.mutex_);
  delegations_.clients_.erase(number_);
}

void Delegations::Client::silence() const {
  eventfd_t count = 0;
  ::eventfd_read(event_.get(), &count);
}

std::vector<Delegations::Identity> Delegations::Client::take() {
  const std::lock_guard lock(delegations_.mutex_);
  const auto count = static_cast<std::ptrdiff_t>(std::min(recalls_.size(), layout::kFileMaxIdentities));
  std::vector<Identity> taken(recalls_.begin(), recalls_.begin() + count);
  recalls_.erase(recalls_.begin(), recalls_.begin() + count);
  return taken;
}

Delegations::~Delegations() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  budget_.give_back(leases_.size());
}

/// Returns its number.
std::uint64_t Delegations::add(Client& client) {
  std::random_device random;
  const std::lock_guard lock(mutex_);
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(error.code().value(), "serve", "", "allow more processes (ulimit -u, pids.max)");
  }
  std::uint64_t number = 0;
  while (number == 0 || clients_.contains(number)) number = std::uint64_t{random()} << 32 | random();
  clients_.emplace(number, &client);
  return number;
}

bool Delegations::grant(std::uint64_t client, int descriptor) {
  struct stat found{};
  if (!grants_ || ::fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) return false;
  const Identity file{.device = found.st_dev, .inode = found.st_ino};
  const std::lock_guard lock(mutex_);
  const auto known = clients_.find(client);
  // One that does not take its recalls has enough of them.
  if (known == clients_.end() || known->second->recalls_.size() >= layout::kFileMaxIdentities) return false;
  auto lease = leases_.find(file);
  if (lease == leases_.end()) {
    if (leases_.size() >= kMostLeases || !budget_.take()) return false;
    lease = leases_.try_emplace(file).first;
    lease->second.descriptor = lease_on(descriptor);
    if (!lease->second.descriptor.valid()) {
      end(lease);
      return false;
    }
    changed_.notify_all();
  }
  if (lease->second.recalled || !is_whole(lease->second.descriptor)) return false;
  lease->second.holders[client] = Clock::now() + kTime + kMargin;
  return true;
}

void Delegations::give_back(std::uint64_t client, std::span<const Identity> files) {
  const std::lock_guard lock(mutex_);
  for (const Identity& file : files) {
    const auto lease = leases_.find(file);
    if (lease == leases_.end()) continue;
    lease->second.holders.erase(client);
    if (lease->second.holders.empty()) end(lease);
  }
}

void Delegations::look() {
  const std::lock_guard lock(mutex_);
  look_at_all(Clock::now());
}

void Delegations::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (leases_.empty()) {
      changed_.wait(lock);
      continue;
    }
    changed_.wait_for(lock, kPause);
    look_at_all(Clock::now());
  }
}

void Delegations::look_at_all(Clock::time_point now) {
  for (auto lease = leases_.begin(); lease != leases_.end();) {
    auto& [file, held] = *lease;
    if (!held.recalled && !is_whole(held.descriptor)) recall(file, held);
    std::erase_if(held.holders, [now](const auto& holder) { return holder.second <= now; });
    lease = held.holders.empty() ? end(lease) : std::next(lease);
  }
}

void Delegations::recall(const Identity& file, Lease& lease) {
  lease.recalled = true;
  for (const auto& [number, until] : lease.holders) {
    const auto client = clients_.find(number);
    if (client == clients_.end()) continue;
    client->second->recalls_.push_back(file);
    ::eventfd_write(client->second->descriptor(), 1);
  }
}

/// Returns the next one.
Delegations::Leases::iterator Delegations::end(Leases::iterator lease) {
  budget_.give_back(1);
  return leases_.erase(lease);
}

}  // namespace wherry::file
