// SPDX-License-Identifier: Apache-2.0
// Connecting again, and opening again what was open.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "base/not_cancelled.hpp"
#include "file/client/host.hpp"

namespace wherry::file {
namespace {

using layout::FileCall;
using layout::FileRequest;
using layout::FileStatus;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstPause = 2ms;
constexpr std::chrono::milliseconds kLongestPause = 200ms;

/// Least time for one attempt to connect. A running server accepts sooner, also on a busy machine; a call without
/// timeout waits no longer than this.
constexpr std::chrono::milliseconds kLeastConnect = 200ms;

/// Unlocks a mutex for a scope.
class Unlocked {
 public:
  explicit Unlocked(std::mutex& mutex) : mutex_(mutex) { mutex_.unlock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() { mutex_.lock(); }

 private:
  std::mutex& mutex_;
};

bool is_same(const FileStatus& one, const FileStatus& other) {
  const bool born = one.has_birth != 0 && other.has_birth != 0;
  return one.device == other.device && one.inode == other.inode &&
         (!born || std::memcmp(&one.born, &other.born, sizeof one.born) == 0);
}

/// Sets `is` while one call connects, and wakes the calls that wait for its result.
class Reconnecting {
 public:
  Reconnecting(bool& is, std::condition_variable_any& done) : is_(is), done_(done) { is_ = true; }
  Reconnecting(const Reconnecting&) = delete;
  Reconnecting& operator=(const Reconnecting&) = delete;
  ~Reconnecting() {
    is_ = false;
    done_.notify_all();
  }

 private:
  bool& is_;
  std::condition_variable_any& done_;
};

}  // namespace

/// Returns 0 once a server is connected and every file that could be reopened is open there, or EIO at the deadline.
/// One call connects, the others wait for its result; none holds the lock meanwhile.
int Host::reconnect(Clock::time_point deadline) {
  while (reconnecting_) {
    const NotCancelled here;
    if (!reconnected_.wait_until(mutex_, deadline, [this] { return !reconnecting_; })) return EIO;
    if (connection_) return 0;
  }
  const bool once = unreachable_;
  if (once && Clock::now() < next_try_) return EIO;
  if (once) deadline = Clock::now();
  const Reconnecting here(reconnecting_, reconnected_);
  std::string problem;
  for (auto pause = kFirstPause; !connection_; pause = std::min(2 * pause, kLongestPause)) {
    std::unique_ptr<HostConnection> made = connect_after(pause, deadline, problem);
    try {
      if (made && (once || Clock::now() < deadline) && take_over(std::move(made))) break;
    } catch (...) {  // no memory: what is not open again must not be taken for what is
      connection_.reset();
      throw;
    }
    connection_.reset();
    if (Clock::now() >= deadline) break;
  }
  if (!connection_ && !once) log::write(log::Level::warning, "the host's files are out of reach: " + problem);
  unreachable_ = !connection_;
  next_try_ = Clock::now() + kTryAgain;
  return connection_ ? 0 : EIO;
}

/// Connects after a pause, since the server may end each connection at once. Never throws: other calls wait for the
/// result.
std::unique_ptr<HostConnection> Host::connect_after(std::chrono::milliseconds pause, Clock::time_point deadline,
                                                    std::string& problem) {
  const Unlocked others(mutex_);
  const NotCancelled here;
  try {
    std::this_thread::sleep_for(pause);
    const Clock::duration left = std::max<Clock::duration>(deadline - Clock::now(), kLeastConnect);
    problem = "the server ends its connections";
    return connect(StreamConnection::kNoWait, left);
  } catch (const std::exception& error) {
    problem = error.what();
    return nullptr;
  }
}

/// Reopens all files on a new connection. False if it broke.
bool Host::take_over(std::unique_ptr<HostConnection> connection) {
  connection_ = std::move(connection);
  pass(options_.at, FaultPoint::connected);
  const layout::FileHello& hello = connection_->server();
  apply_noted_renames();
  const bool other_boot = !std::ranges::equal(hello.boot, server_.boot);
  server_ = hello;
  lends_.store(options_.borrows && connection_->lender() >= 0, std::memory_order_relaxed);
  give_up_locks();
  return std::ranges::all_of(files_, [&](const std::shared_ptr<File>& file) {
    if (file && other_boot) {
      file->lost = std::exchange(file->unflushed, false);
      set_lent(file->own, nullptr);
    }
    return !file || reopen(*file);
  });
}

/// Reopens one file, under either of its names while a rename is not answered yet. False if the connection broke.
bool Host::reopen(File& file) {
  if (file.stale) return true;
  std::optional<bool> found = reopen(file, file.name);
  if (found && !*found && renaming_) {
    std::string name = file.name;
    renaming_->apply(name);
    if (name != file.name) found = reopen(file, name);
  }
  if (!found) return false;
  file.stale = !*found;
  if (file.stale) set_lent(file.own, nullptr);
  pass(options_.at, FaultPoint::reopened);
  return true;
}

/// Opens the name and returns whether it is the same file. Empty if the connection broke.
std::optional<bool> Host::reopen(File& file, const std::string& name) {
  FileRequest request{};
  request.call = static_cast<std::uint32_t>(FileCall::open);
  request.flags = file.flags;
  FileStatus status{};
  if (!connection_->send(request, name, {}, Buffers({}), 0)) return {};
  const auto answer = connection_->receive(std::as_writable_bytes(std::span(&status, 1)));
  if (!answer) return {};
  if (answer->error != 0) return false;
  file.handle = answer->value;
  file.lent_as = answer->position;
  if (is_same(file.status, status)) return true;
  FileRequest close{};
  close.call = static_cast<std::uint32_t>(FileCall::close);
  close.handle = answer->value;
  if (!connection_->send(close, {}, {}, Buffers({}), 0) || !connection_->receive(std::span<std::byte>())) return {};
  return false;
}

}  // namespace wherry::file
