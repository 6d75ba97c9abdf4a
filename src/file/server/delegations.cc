// SPDX-License-Identifier: Apache-2.0
#include "file/server/delegations.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <random>
#include <system_error>
#include <utility>

#include <wherry/error.hpp>

#include "file/server/lease.hpp"
#include "file/server/tree.hpp"
#include "file/wire/open_again.hpp"

namespace wherry::file {
namespace {

using namespace std::chrono_literals;

/// Shortest pause between looks at the leases, unless the kernel notifies.
constexpr auto kPause = 10ms;
/// Longest pause while there are leases. A writer may be cut off up to this much earlier.
constexpr auto kLongestPause = 1000ms;
constexpr std::chrono::milliseconds kTime(layout::kFileDelegationMs);
/// Minimum age of a delegation at its recall. The client's kernel discards answers that were under way when it is told
/// to drop its cache. The answer that came with the delegation may be the first one to show a change.
constexpr auto kSettled = 50ms;
/// After a broken lease the file is not delegated for this time, for opens that failed and are retried.
constexpr auto kRest = 250ms;
/// A client that ignores a recall gets no delegation for this time, since each open would wait for it. Doubled at each
/// later ignored recall, up to 64 times.
constexpr auto kDistrust = 5s;
constexpr int kMostDoublings = 6;
/// Limit of files that are read or written repeatedly at one time. Each takes a descriptor, and some time at each look.
constexpr std::size_t kMostLeases = 256;

/// Period of the recalls of a file that is delegated for writing.
constexpr auto kRepeat = 250ms;
/// Limit of held-back bytes per file and client.
constexpr std::uint64_t kMostKept = std::uint64_t{64} << 20;

/// Half of the free space: file systems need room for more than data.
std::uint64_t room_on(int descriptor) {
  struct statfs found{};
  if (::fstatfs(descriptor, &found) != 0) return 0;
  if (found.f_blocks == 0) return UINT64_MAX;  // tmpfs without a limit
  return std::uint64_t{found.f_bavail} * static_cast<std::uint64_t>(found.f_bsize) / 2;
}

/// A new open file description of the file, with a lease on it. Invalid: the kernel gives none.
UniqueFd lease_on(int descriptor, pid_t notified) {
  UniqueFd made = open_again(descriptor, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  return made.valid() && take_lease(made.get(), F_RDLCK, notified) ? std::move(made) : UniqueFd();
}

/// Whether no open waits for the end of the lease, or has failed because of it.
bool is_whole(const UniqueFd& lease) { return ::fcntl(lease.get(), F_GETLEASE) == F_RDLCK; }

sigset_t lease_signal() {
  sigset_t signal{};
  ::sigemptyset(&signal);
  ::sigaddset(&signal, kLeaseSignal);
  return signal;
}

/// Waits for kLeaseSignal, which the calling thread blocks. A signal sent since the last call ends the wait at once.
void wait_until(Delegations::Clock::time_point end) {
  const sigset_t signal = lease_signal();
  if (end == Delegations::Clock::time_point::max()) {
    ::sigwaitinfo(&signal, nullptr);
    return;
  }
  const auto left = std::max<std::chrono::nanoseconds>(end - Delegations::Clock::now(), 0ns);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
  ::sigtimedwait(&signal, nullptr, &timeout);
}

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
    wake(Clock::time_point::min());
  }
  if (thread_.joinable()) thread_.join();
  budget_.give_back(leases_);
}

/// Returns the client's number.
std::uint64_t Delegations::add(Client& client) {
  std::random_device random;
  std::unique_lock lock(mutex_);
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(error.code().value(), "serve", "", "allow more processes (ulimit -u, pids.max)");
  }
  started_.wait(lock, [this] { return thread_number_ != 0; });
  std::uint64_t number = 0;
  while (number == 0 || clients_.contains(number)) number = std::uint64_t{random()} << 32 | random();
  clients_.emplace(number, &client);
  return number;
}

bool Delegations::grant(std::uint64_t client, int descriptor) {
  struct stat found{};
  if (!grants_ || ::fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode) || !is_local(descriptor)) return false;
  const Identity identity{.device = found.st_dev, .inode = found.st_ino};
  pid_t notified = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (!may_hold(client, now)) return false;
    notified = thread_number_;
    // A delegation may have been given back just now.
    if (has_writer(identity) || leases_ >= most_leases()) wake(look_at_writers(now));
    if (has_writer(identity)) return false;  // the open for the new lease would break the writer's lease
    const auto known = files_.find(identity);
    if (known != files_.end()) return prolong(known->second, client, now);
    if (leases_ >= most_leases() || !budget_.take()) return false;
    ++leases_;
  }
  return make(identity, client, lease_on(descriptor, notified));
}

std::shared_ptr<WriteDelegation> Delegations::grant_write(std::uint64_t client, int descriptor) {
  struct stat found{};
  if (!grants_ || ::fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode) || !is_local(descriptor)) return nullptr;
  const Identity identity{.device = found.st_dev, .inode = found.st_ino};
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  wake(look_at_writers(now));  // a delegation may have been given back just now
  // A resting file is left to opens that are retried.
  if (!may_hold(client, now) || files_.contains(identity) || has_writer(identity)) return nullptr;
  // Leaves leases for other clients.
  if (writers_of(client) >= most_writers()) return nullptr;
  if (leases_ >= most_leases() || !budget_.take()) return nullptr;
  auto taken = WriteDelegation::take(descriptor, client, timeout_, thread_number_);
  if (taken == nullptr) {
    budget_.give_back(1);
    return nullptr;
  }
  ++leases_;
  writers_.push_back({.delegation = taken});
  wake(now + longest_pause());
  return taken;
}

std::uint64_t Delegations::reserve(const WriteDelegation& writer, int descriptor) {
  const std::uint64_t room = room_on(descriptor);
  const std::lock_guard lock(mutex_);
  wake(look_at_writers(Clock::now()));  // those that have ended reserve nothing
  std::uint64_t others = 0;
  Writer* own = nullptr;
  for (Writer& one : writers_) {
    if (one.delegation.get() == &writer)
      own = &one;
    else if (one.delegation->file().device == writer.file().device)
      others += one.reserved;
  }
  if (own == nullptr || writer.was_recalled()) return 0;
  own->reserved = std::min(kMostKept, room - std::min(room, others));
  return own->reserved;
}

std::size_t Delegations::most_leases() const { return std::min(kMostLeases, budget_.each()); }

std::size_t Delegations::writers_of(std::uint64_t client) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(writers_, [client](const Writer& one) { return one.delegation->client() == client; }));
}

bool Delegations::has_writer(const Identity& identity) const {
  return std::ranges::any_of(writers_, [&](const Writer& one) { return one.delegation->file() == identity; });
}

/// A client that takes no recalls, or ignores them, gets no more delegations.
bool Delegations::may_hold(std::uint64_t client, Clock::time_point now) const {
  const auto known = clients_.find(client);
  return known != clients_.end() && known->second->recalls_.size() < layout::kFileMaxIdentities &&
         now >= known->second->refused_until_;
}

bool Delegations::prolong(File& file, std::uint64_t client, Clock::time_point now) {
  if (!file.lease.valid() || file.broken || !is_whole(file.lease)) return false;
  Holder& holder = file.holders.try_emplace(client, Holder{.since = now, .until = now}).first->second;
  holder.until = now + kTime + margin_;
  wake(std::min(holder.until, now + kLongestPause));
  return true;
}

/// The caller has counted the lease already. Another thread may have made one for the file meanwhile.
bool Delegations::make(const Identity& identity, std::uint64_t client, UniqueFd lease) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  File* file = nullptr;
  if (lease.valid() && may_hold(client, now)) {
    file = &files_[identity];
    if (!file->lease.valid() && now >= file->rests_until) {
      file->lease = std::move(lease);
      const bool is_held = prolong(*file, client, now);
      // The kernel may have notified before the lease was recorded.
      if (!is_held) wake(now);
      return is_held;
    }
  }
  --leases_;
  budget_.give_back(1);
  return file != nullptr && prolong(*file, client, now);
}

/// Null: no holder that has received its recall. A recall that is not taken yet belongs to a later delegation.
Delegations::Holder* Delegations::recalled_holder(std::uint64_t client, const Identity& identity) {
  const auto known = clients_.find(client);
  const auto file = files_.find(identity);
  if (known == clients_.end() || file == files_.end()) return nullptr;
  const auto holder = file->second.holders.find(client);
  const auto& untaken = known->second->recalls_;
  const bool is_recalled = holder != file->second.holders.end() && holder->second.recalled &&
                           std::ranges::find(untaken, identity) == untaken.end();
  return is_recalled ? &holder->second : nullptr;
}

std::vector<Delegations::Identity> Delegations::acknowledge(std::uint64_t client, std::span<const Identity> files) {
  std::vector<Identity> held;
  const std::lock_guard lock(mutex_);
  for (const Identity& identity : files) {
    Holder* const holder = recalled_holder(client, identity);
    if (holder == nullptr) continue;
    // Only once, or a client could keep the file forever.
    if (!std::exchange(holder->is_acknowledged, true)) holder->until = Clock::now() + kTime + margin_;
    held.push_back(identity);
  }
  return held;
}

void Delegations::give_back(std::uint64_t client, std::span<const Identity> files) {
  Ended ended;
  const std::lock_guard lock(mutex_);
  for (const Identity& identity : files) {
    if (recalled_holder(client, identity) == nullptr) continue;
    File& file = files_[identity];
    file.holders.erase(client);
    if (!file.holders.empty()) continue;
    end(file, Clock::now(), ended);
    wake(file.rests_until);
  }
}

void Delegations::look() {
  Ended ended;
  const std::lock_guard lock(mutex_);
  wake(look_at_all(Clock::now(), ended));
}

/// Requires the lock. Makes the thread look at the leases at this time, if it would later.
void Delegations::wake(Clock::time_point at) {
  if (!thread_.joinable() || at >= next_look_) return;
  next_look_ = at;
  ::pthread_kill(thread_.native_handle(), kLeaseSignal);
}

void Delegations::run() {
  const sigset_t signal = lease_signal();
  ::pthread_sigmask(SIG_BLOCK, &signal, nullptr);
  std::unique_lock lock(mutex_);
  thread_number_ = ::gettid();
  started_.notify_all();
  while (!stopping_) {
    Ended ended;
    const auto now = Clock::now();
    const auto until = std::max(look_at_all(now, ended), now + kPause);
    next_look_ = until;
    lock.unlock();
    ended.clear();
    wait_until(until);
    lock.lock();
  }
}

/// Returns when to look again.
Delegations::Clock::time_point Delegations::look_at_all(Clock::time_point now, Ended& ended) {
  auto next_look = look_at_writers(now);
  for (auto next = files_.begin(); next != files_.end();) {
    const auto at = next++;
    File& file = at->second;
    if (file.lease.valid()) {
      file.broken = file.broken || !is_whole(file.lease);
      if (file.broken) recall(at->first, file, now);
      expire(file, now);
      if (file.holders.empty()) end(file, now, ended);
    }
    if (file.lease.valid() || now < file.rests_until)
      next_look = std::min({next_look, due(file), now + kLongestPause});
    else
      files_.erase(at);
  }
  return next_look;
}

/// When the state of the file changes next, unless the kernel notifies.
Delegations::Clock::time_point Delegations::due(const File& file) {
  if (!file.lease.valid()) return file.rests_until;
  auto first = Clock::time_point::max();
  for (const auto& [number, holder] : file.holders) {
    first = std::min(first, holder.until);
    if (file.broken && !holder.recalled) first = std::min(first, holder.since + kSettled);
  }
  return first;
}

Delegations::Clock::duration Delegations::longest_pause() const {
  return std::min<Clock::duration>(kLongestPause, timeout_ / 2);
}

/// Returns when to look again.
Delegations::Clock::time_point Delegations::look_at_writers(Clock::time_point now) {
  auto next_look = Clock::time_point::max();
  const auto is_over = [&](Writer& one) {
    const WriteDelegation::State state = one.delegation->look(now);
    const Identity& file = one.delegation->file();
    if (state == WriteDelegation::State::recalled && now >= one.next_recall) {
      recall(one.delegation->client(), file);
      one.next_recall = now + kRepeat;
    }
    if (state != WriteDelegation::State::over) {
      const bool is_held = state == WriteDelegation::State::held;
      next_look = std::min(next_look, now + (is_held ? longest_pause() : kPause));
      return false;
    }
    if (one.delegation->was_recalled()) {
      files_[file].rests_until = now + kRest;
      next_look = std::min(next_look, now + kRest);
    }
    if (one.delegation->was_cut_off()) distrust(one.delegation->client(), now);
    --leases_;
    budget_.give_back(1);
    return true;
  };
  std::erase_if(writers_, is_over);
  return next_look;
}

void Delegations::recall(std::uint64_t number, const Identity& identity) {
  const auto client = clients_.find(number);
  if (client == clients_.end()) return;
  auto& recalls = client->second->recalls_;
  if (std::ranges::find(recalls, identity) == recalls.end()) recalls.push_back(identity);
  ::eventfd_write(client->second->descriptor(), 1);
}

void Delegations::recall(const Identity& identity, File& file, Clock::time_point now) {
  for (auto& [number, holder] : file.holders) {
    if (holder.recalled || now < holder.since + kSettled) continue;
    holder.recalled = now;
    recall(number, identity);
  }
}

void Delegations::distrust(std::uint64_t number, Clock::time_point now) {
  const auto client = clients_.find(number);
  if (client == clients_.end()) return;
  int& before = client->second->ignored_recalls_;
  client->second->refused_until_ = std::max(client->second->refused_until_, now + kDistrust * (1 << before));
  before = std::min(before + 1, kMostDoublings);
}

void Delegations::expire(File& file, Clock::time_point now) {
  for (auto next = file.holders.begin(); next != file.holders.end();) {
    const auto holder = next++;
    if (now < holder->second.until) continue;
    const bool had_time = holder->second.recalled && now >= *holder->second.recalled + margin_;
    if (had_time) distrust(holder->first, now);
    file.holders.erase(holder);
  }
}

void Delegations::end(File& file, Clock::time_point now, Ended& ended) {
  // Before the descriptor is closed, which may take long.
  ::fcntl(file.lease.get(), F_SETLEASE, F_UNLCK);
  ended.push_back(std::move(file.lease));
  file.rests_until = file.broken ? now + kRest : now;
  file.broken = false;
  --leases_;
  budget_.give_back(1);
}

}  // namespace wherry::file
