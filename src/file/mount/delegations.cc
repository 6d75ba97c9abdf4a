// SPDX-License-Identifier: Apache-2.0
#include "file/mount/delegations.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <span>

#include "base/log.hpp"

namespace wherry::file::mount {
namespace {

using namespace std::chrono_literals;
using layout::FileCall;
using layout::FileIdentity;

constexpr std::size_t kRecallRing = std::size_t{64} << 10;
constexpr auto kFirstPause = 200ms;
constexpr auto kLongestPause = 5000ms;
/// Timeout for connecting to a server that is known. Only the end of the mount waits for this.
constexpr auto kConnect = 1s;
/// Longer than the time that the server gives: the kernel counts from the answer, and the server waits longer.
constexpr auto kEnded = 10 * std::chrono::milliseconds(layout::kFileDelegationMs);
/// From this many entries on, ended ones are erased.
constexpr std::size_t kManyAsked = 1024;

/// Since Linux 5.10 the kernel discards an answer that was under way when the attributes were dropped.
bool drops_what_is_on_its_way() {
  utsname name{};
  int major = 0;
  int minor = 0;
  if (::uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &major, &minor) != 2) return false;
  return std::pair(major, minor) >= std::pair(5, 10);
}

struct Answer {
  std::uint64_t value = 0;
  std::vector<FileIdentity> files{};
};

/// Empty: the connection is unusable.
std::optional<Answer> ask(HostConnection& connection, FileCall call, std::uint64_t client,
                          const std::vector<FileIdentity>& files = {}) {
  layout::FileRequest request{};
  request.call = static_cast<std::uint32_t>(call);
  request.offset = client;
  const auto bytes = std::as_bytes(std::span(files));
  const std::string_view second(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::byte> payload;
  if (!connection.send(request, {}, second, Buffers({}), 0)) return {};
  const auto head = connection.receive(payload, layout::kFileMaxIdentities * sizeof(FileIdentity));
  if (!head || head->error != 0 || payload.size() % sizeof(FileIdentity) != 0) return {};
  Answer answer{.value = head->value, .files = std::vector<FileIdentity>(payload.size() / sizeof(FileIdentity))};
  if (!payload.empty()) std::memcpy(answer.files.data(), payload.data(), payload.size());
  return answer;
}

}  // namespace

/// While it lives, `stop` ends the calls of the connection.
class Delegations::Connected {
 public:
  Connected(Delegations& delegations, StreamConnection& connection) : delegations_(delegations) {
    const std::lock_guard lock(delegations_.mutex_);
    if (delegations_.stopping_) connection.cancel();
    delegations_.connection_ = &connection;
  }
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;
  ~Connected() {
    const std::lock_guard lock(delegations_.mutex_);
    delegations_.connection_ = nullptr;
  }

 private:
  Delegations& delegations_;
};

void Delegations::start(std::function<void(NodeId)> drop, WriteBehind& write_behind) {
  drop_ = std::move(drop);
  write_behind_ = &write_behind;
  if (drops_what_is_on_its_way()) thread_ = std::thread([this] { run(); });
}

void Delegations::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (connection_ != nullptr) connection_->cancel();
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

int Delegations::look(NodeId node, const Identity& identity, OpenFile& file, layout::FileStatus& status,
                      std::chrono::milliseconds& kept_for) {
  kept_for = {};
  const Hosts::Use host = file.file().use();
  const std::uint64_t number = number_.load(std::memory_order_relaxed);
  if (number == 0 || !file.delegation().is_due()) return host->status(file.file().handle(), status);
  // Recorded before the server grants it: the recall may come before the answer.
  note(node, {.device = identity.device, .inode = identity.inode});
  const int error = host->delegate(file.file().handle(), number, status, kept_for);
  const bool was_asked = error != EBUSY && error != ECONNRESET && error != EIO;
  if (was_asked) file.delegation().note(kept_for != 0ms);
  // A lent file needs no server. After a kill of the daemon the server may not even have it: a file without a name.
  if (error != 0) return host->status(file.file().handle(), status);
  // The device and inode that overlayfs may report from now on.
  note(node, {.device = status.device, .inode = status.inode});
  return 0;
}

void Delegations::note(NodeId node, const FileIdentity& file) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (asked_.size() >= kManyAsked && now >= forget_) {
    std::erase_if(asked_, [now](const auto& asked) { return asked.second < now; });
    forget_ = now + kEnded;
  }
  asked_[{file, node}] = now + kEnded;
}

void Delegations::run() {
  auto pause = kFirstPause;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const auto before = Clock::now();
    converse();
    if (Clock::now() - before > kLongestPause) pause = kFirstPause;
    lock.lock();
    stopped_.wait_for(lock, pause, [this] { return stopping_; });
    pause = std::min(2 * pause, kLongestPause);
  }
}

/// Serves one connection until it breaks.
void Delegations::converse() {
  try {
    StreamConnection connection(options_.address, kRecallRing, {}, StreamConnection::kNoWait, kConnect,
                                options_.process);
    const Connected here(*this, connection);
    serve(connection);
    lose();
  } catch (const std::exception& error) {
    log::write(log::Level::debug, std::string("wherry mount: no delegations: ") + error.what());
  }
  lose();
}

/// Delegated files may change from now on, so the kernel must drop them. Only once: the kernel discards answers that
/// are under way at that moment.
void Delegations::lose() {
  if (number_.exchange(0, std::memory_order_relaxed) == 0) return;
  std::map<Asked, Clock::time_point> lost;
  {
    const std::lock_guard lock(mutex_);
    lost.swap(asked_);
  }
  for (const auto& [asked, until] : lost) drop_(asked.second);
  write_behind_->recall_all();
}

void Delegations::serve(HostConnection& connection) {
  auto answer = ask(connection, FileCall::await_recalls, 0);
  while (answer && answer->value != 0) {
    const std::uint64_t client = answer->value;
    number_.store(client, std::memory_order_relaxed);
    const Files recalled = write_behind_->recall(answer->files);
    if (!recalled.empty()) {
      // Files that the server no longer waits for may have changed. They are not dropped here: the kernel discards
      // answers that are under way at that moment, and such an answer could be the first one to show the change.
      const auto held = ask(connection, FileCall::acknowledge_recalls, client, recalled);
      if (!held) return;
      drop(held->files);
      if (!ask(connection, FileCall::give_back, client, held->files)) return;
    }
    answer = ask(connection, FileCall::await_recalls, client);
  }
}

void Delegations::drop(const Files& files) {
  std::vector<NodeId> nodes;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [asked, until] : asked_) {
      if (std::ranges::find(files, asked.first) != files.end()) nodes.push_back(asked.second);
    }
  }
  for (const NodeId node : nodes) drop_(node);
}

}  // namespace wherry::file::mount
