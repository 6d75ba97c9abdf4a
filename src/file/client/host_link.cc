// SPDX-License-Identifier: Apache-2.0
#include "file/client/host_link.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/not_cancelled.hpp"

namespace wherry::file {
namespace {

using layout::FileCall;
using layout::FileRequest;
using layout::FileStatus;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstPause = 2ms;
constexpr std::chrono::milliseconds kLongestPause = 200ms;

/// Minimum time for one attempt to connect. A running server accepts sooner, also on a busy machine. A call without
/// timeout waits no longer than this.
constexpr std::chrono::milliseconds kLeastConnect = 200ms;

/// How long a call waits for leases. A client of the server that writes a file back has at most 32 s. Others may have
/// given leases too, such as Samba, whose clients keep theirs for a shorter time.
constexpr std::chrono::seconds kLeaseTimeout = 40s;
/// Pauses between two attempts.
constexpr std::chrono::milliseconds kFirstLeasePause = 1ms;
constexpr std::chrono::milliseconds kLongestLeasePause = 16ms;

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

/// Waits for a starting server as long as wherry::connect would, but no longer than a call waits.
Timeout listener_wait_of(const HostOptions& options) {
  const std::chrono::milliseconds configured(config::number(config::Key::connect_timeout));
  return std::min(configured, options.timeout);
}

/// Names that are too long, for which the server would close the connection, and a missing name.
int problem_of(std::string_view name, std::string_view second, bool has_file) {
  if (name.size() > layout::kFileMaxName || second.size() > layout::kFileMaxName) return ENAMETOOLONG;
  return name.empty() && !has_file ? ENOENT : 0;
}

}  // namespace

HostLink::HostLink(HostOptions options) : options_(std::move(options)) {
  if (options_.greeted) {
    server_ = *options_.greeted;
    read_only_ = server_.read_only != 0;
    return;
  }
  const Timeout listener_wait = options_.waits ? listener_wait_of(options_) : StreamConnection::kNoWait;
  connection_ = connect(listener_wait);
  server_ = connection_->server();
  read_only_ = server_.read_only != 0;
  note_lender();
}

std::unique_ptr<HostConnection> HostLink::connect(Timeout listener_wait, Timeout timeout) const {
  auto made = std::make_unique<StreamConnection>(options_.address, options_.ring_bytes, options_.at, listener_wait,
                                                 timeout, options_.process);
  if (options_.shorten) return options_.shorten(std::move(made));
  return made;
}

void HostLink::note_lender() {
  lends_.store(options_.borrows && connection_->lender() >= 0, std::memory_order_relaxed);
}

void HostLink::refuse_lent() {
  options_.borrows = false;
  lends_.store(false, std::memory_order_relaxed);
}

std::shared_ptr<HostLink::File> HostLink::find(Handle handle) const {
  const std::uint64_t index = handle & UINT32_MAX;
  return index < files_.size() && files_[index] && files_[index]->own == handle ? files_[index] : nullptr;
}

HostLink::Handle HostLink::add(std::shared_ptr<File> file) {
  auto place = std::ranges::find_if(files_, [](const auto& taken) { return !taken; });
  if (place == files_.end()) place = files_.emplace(files_.end());
  const Handle own = std::uint64_t{++opened_} << 32 | static_cast<std::uint64_t>(place - files_.begin());
  file->own = own;
  if (file->boot == BootId{}) file->boot = boot();
  *place = std::move(file);
  return own;
}

HostLink::Handle HostLink::resume(std::shared_ptr<File> file) {
  const Handle own = add(file);
  if (connection_) note_boot_change(*file);
  if (connection_ && !reopen(*file)) connection_.reset();
  return own;
}

void HostLink::erase(const std::shared_ptr<File>& file) {
  if (find(file->own) == file) files_[file->own & UINT32_MAX].reset();
}

int HostLink::rename(const Asked& asked, Renaming renaming) {
  apply_noted_renames();
  renaming_ = std::move(renaming);
  const int error = call(asked, nullptr);
  for (const std::shared_ptr<File>& file : files_) {
    if (file && error == 0) renaming_->apply(file->name);
  }
  renaming_.reset();
  return error;
}

void HostLink::announce_rename(Renaming renaming) {
  const std::lock_guard lock(noted_mutex_);
  announced_.push_back(std::move(renaming));
}

void HostLink::settle_rename(const Renaming& renaming, bool is_made) {
  {
    const std::lock_guard lock(noted_mutex_);
    std::erase(announced_, renaming);
    if (is_made) noted_.push_back(renaming);
  }
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) apply_noted_renames();
}

std::vector<std::string> HostLink::later_names(const std::string& name) {
  std::vector<std::string> names;
  std::string later = name;
  const std::lock_guard lock(noted_mutex_);
  for (const Renaming& renaming : noted_) renaming.apply(later);
  if (later != name) names.push_back(later);
  const auto add = [&](const Renaming& renaming) {
    std::string other = later;
    renaming.apply(other);
    if (other != later) names.push_back(other);
  };
  std::ranges::for_each(announced_, add);
  if (renaming_) add(*renaming_);
  return names;
}

void HostLink::apply_noted_renames() {
  const std::lock_guard lock(noted_mutex_);
  for (const Renaming& renaming : noted_) {
    for (const std::shared_ptr<File>& file : files_) {
      if (file) renaming.apply(file->name);
    }
  }
  noted_.clear();
}

void HostLink::Renaming::apply(std::string& name) const {
  const auto moved = [&](std::string_view old, std::string_view now) {
    const bool is_there = name.starts_with(old) && (name.size() == old.size() || name[old.size()] == '/');
    if (is_there) name.replace(0, old.size(), now);
    return is_there;
  };
  if (!moved(from, to) && exchanged) moved(to, from);
}

/// Waits for a lease without the mutex: the call that ends the lease may need this connection.
int HostLink::call(const Asked& asked, File* file, std::span<std::byte> payload, layout::FileAnswer* answer) {
  if (const int error = problem_of(asked.name, asked.second, file != nullptr); error != 0) return error;
  std::optional<Clock::time_point> deadline;
  for (auto pause = kFirstLeasePause;; pause = std::min(2 * pause, kLongestLeasePause)) {
    layout::FileAnswer got{};
    const int error = exchange(asked, file, [&](HostConnection& connection) -> std::optional<int> {
      const auto received = connection.receive(payload);
      if (!received) return {};
      got = *received;
      return static_cast<int>(got.error);
    });
    if (answer != nullptr) *answer = got;
    if (error != EAGAIN || got.position != layout::kFileLeased) return error;
    const auto now = Clock::now();
    if (!deadline) deadline = now + kLeaseTimeout;
    if (now >= *deadline) return error;
    const Unlocked others(mutex_);
    const NotCancelled here;
    std::this_thread::sleep_for(pause);
  }
}

int HostLink::call(const Asked& asked, File* file, std::vector<std::byte>& payload, std::size_t most) {
  if (const int error = problem_of(asked.name, asked.second, file != nullptr); error != 0) return error;
  return exchange(asked, file, [&](HostConnection& connection) -> std::optional<int> {
    const auto got = connection.receive(payload, most);
    if (!got) return {};
    return static_cast<int>(got->error);
  });
}

/// Returns 0 once a server is connected and all files that could be reopened are open, or EIO at the deadline. One call
/// connects, the others wait for its result; none holds the mutex meanwhile.
int HostLink::reconnect(Clock::time_point deadline) {
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
    } catch (...) {  // no memory: files that are not reopened must not count as open
      connection_.reset();
      throw;
    }
    connection_.reset();
    if (Clock::now() >= deadline) break;
  }
  if (!connection_ && !once) log::write(log::Level::warning, "cannot reach the host's files: " + problem);
  unreachable_ = !connection_;
  next_try_ = Clock::now() + kTryAgain;
  return connection_ ? 0 : EIO;
}

/// Connects after a pause, since the server may close each connection at once. Must not throw: other calls wait for the
/// result.
std::unique_ptr<HostConnection> HostLink::connect_after(std::chrono::milliseconds pause, Clock::time_point deadline,
                                                        std::string& problem) {
  const Unlocked others(mutex_);
  const NotCancelled here;
  try {
    std::this_thread::sleep_for(pause);
    const Clock::duration left = std::max<Clock::duration>(deadline - Clock::now(), kLeastConnect);
    problem = "the server closes its connections";
    return connect(StreamConnection::kNoWait, left);
  } catch (const std::exception& error) {
    problem = error.what();
    return nullptr;
  }
}

/// Reopens all files on a new connection. False: it broke.
bool HostLink::take_over(std::unique_ptr<HostConnection> connection) {
  connection_ = std::move(connection);
  pass(options_.at, FaultPoint::connected);
  const layout::FileHello& hello = connection_->server();
  apply_noted_renames();
  server_ = hello;
  note_lender();
  give_up_locks();
  return std::ranges::all_of(files_, [&](const std::shared_ptr<File>& file) {
    if (!file) return true;
    file->has_write_tickets = false;  // they have ended with the connection
    note_boot_change(*file);
    return reopen(*file);
  });
}

/// Marks unflushed data as lost if the host was rebooted.
void HostLink::note_boot_change(File& file) {
  if (file.boot == boot()) return;
  file.boot = boot();
  const bool was_unflushed = std::exchange(file.unflushed, false);
  file.lost = file.lost || was_unflushed;
  lent_.set(file.own, nullptr);
  if (file.note_boot) file.note_boot({.boot = file.boot, .lost = file.lost});
}

bool HostLink::take_loss(File& file) {
  if (!std::exchange(file.lost, false)) return false;
  if (file.note_boot) file.note_boot({.boot = file.boot, .lost = false});
  return true;
}

/// Reopens one file, under any name that it may have because of an unfinished rename. False: the connection broke.
bool HostLink::reopen(File& file) {
  if (file.stale) return true;
  std::optional<bool> found = reopen(file, file.name);
  if (found && !*found) {
    for (const std::string& name : later_names(file.name)) {
      found = reopen(file, name);
      if (!found || *found) break;
    }
  }
  if (!found) return false;
  if (!*found && file.kept != nullptr) *found = adopt(file);
  file.stale = !*found;
  if (file.stale && file.kept == nullptr) lent_.set(file.own, nullptr);
  pass(options_.at, FaultPoint::reopened);
  return true;
}

/// Reopens by the kept descriptor. Returns whether the server has the file, too. Otherwise it is stale, except for
/// calls on the descriptor.
bool HostLink::adopt(File& file) {
  file.handle = connection_->adopt(file.kept->descriptor(), file.kept->appends());
  return file.handle != 0;
}

/// Sends a request until no lease is met: a lease says nothing about the file. The lease ends without this connection.
/// Empty: the connection broke, or the lease does not end; then the caller connects again.
std::optional<layout::FileAnswer> HostLink::ask_past_leases(const FileRequest& request, const std::string& name,
                                                            FileStatus& status) {
  const auto deadline = Clock::now() + kLeaseTimeout;
  for (auto pause = kFirstLeasePause; Clock::now() < deadline; pause = std::min(2 * pause, kLongestLeasePause)) {
    if (!connection_->send(request, name, {}, Buffers({}), 0)) return {};
    const auto answer = connection_->receive(std::as_writable_bytes(std::span(&status, 1)));
    if (!answer || answer->error != EAGAIN || answer->position != layout::kFileLeased) return answer;
    const NotCancelled here;
    std::this_thread::sleep_for(pause);
  }
  return {};
}

/// Opens the name and returns whether it is the same file. Empty: the connection broke.
std::optional<bool> HostLink::reopen(File& file, const std::string& name) {
  FileRequest request{};
  request.call = static_cast<std::uint32_t>(FileCall::open);
  request.flags = file.flags;
  FileStatus status{};
  const auto answer = ask_past_leases(request, name, status);
  if (!answer) return {};
  if (answer->error != 0) return false;
  if (file.handle == 0) file.end = status.size;  // a file of an earlier process
  file.handle = answer->value;
  file.lent_as = answer->position;
  if (is_same(file.status, status)) return true;
  FileRequest close{};
  close.call = static_cast<std::uint32_t>(FileCall::close);
  close.handle = answer->value;
  if (!connection_->send(close, {}, {}, Buffers({}), 0) || !connection_->receive(std::span<std::byte>())) return {};
  return false;
}

/// On a new connection requests no locks again: another owner may have held each of them meanwhile.
void HostLink::give_up_locks() {
  bool lost = false;
  for (const std::shared_ptr<File>& owner : files_) {
    if (!owner || owner->held == nullptr) continue;
    owner->stale = true;
    if (!owner->held->any()) continue;
    owner->locked->stale = true;
    lost = true;
  }
  if (lost) log::write(log::Level::warning, "the host's server was restarted: locks on its files are lost");
}

}  // namespace wherry::file
