// SPDX-License-Identifier: Apache-2.0
#include "file/mount/session.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <utility>

#include <wherry/error.hpp>

#include "base/log.hpp"
#include "file/mount/device_io.hpp"
#include "file/mount/mount_point.hpp"
#include "file/mount/operations.hpp"

namespace wherry::file::mount {
namespace {

using namespace std::chrono_literals;

/// Interrupts a thread that waits for a request.
constexpr int kInterrupt = SIGUSR2;
/// For programs that never stop asking.
constexpr auto kLongestEnd = 5s;

/// While mounting, the last line that libfuse wrote: it says why that failed.
std::mutex last_mutex;
std::string last_line;
bool is_mounting = false;

__attribute__((format(printf, 2, 0))) void take_line(fuse_log_level level, const char* format, va_list arguments) {
  std::array<char, 512> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  std::string line = text.data();
  while (line.ends_with('\n')) line.pop_back();
  const std::lock_guard lock(last_mutex);
  if (is_mounting && level <= FUSE_LOG_ERR)
    last_line = line;
  else
    log::write(level <= FUSE_LOG_ERR ? log::Level::error : log::Level::debug, line);
}

void take_lines(bool mounting) {
  const std::lock_guard lock(last_mutex);
  is_mounting = mounting;
}

std::string taken_line() {
  const std::lock_guard lock(last_mutex);
  return std::exchange(last_line, {});
}

void destroy(fuse_session* session) { fuse_session_destroy(session); }

std::string settings_of(const MountOptions& options, bool read_only) {
  std::string settings = "default_permissions,subtype=wherry,fsname=" + options.address;
  if (options.allow_other) settings += ",allow_other";
  if (read_only) settings += ",ro";
  return settings;
}

}  // namespace

HostOptions Session::host_options(const MountOptions& options) {
  HostOptions made{.address = options.address, .timeout = options.timeout};
  if (options.passthrough) {
    made.shorten = [this](std::unique_ptr<StreamConnection> stream) {
      return LocalConnection::instead_of(std::move(stream), local_);
    };
  }
  return made;
}

Session::Session(const MountOptions& options)
    : directory_(prepare_mount_point(options.directory)),
      system_((check_fuse(options.directory), host_options(options)), options.connections),
      ended_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      session_(nullptr, destroy),
      count_(options.threads) {
  if (!ended_.valid()) throw Error(errno, "mount on", options.directory, "raise the limit of open files (ulimit -n)");
  mount(options);
}

void Session::mount(const MountOptions& options) {
  system_.tree().hide(directory_);
  if (!options.passthrough) system_.passthrough().forbid();
  fuse_set_log_func(take_line);
  take_lines(true);
  std::string name = "wherry";
  std::string option = "-o";
  std::string settings = settings_of(options, options.read_only || system_.read_only());
  std::array<char*, 4> words{name.data(), option.data(), settings.data(), nullptr};
  fuse_args arguments{3, words.data(), 0};
  session_.reset(fuse_session_new(&arguments, &operations(), sizeof(fuse_lowlevel_ops), &system_));
  fuse_opt_free_args(&arguments);
  if (session_ == nullptr) throw Error(EINVAL, "mount on", options.directory, taken_line());
  system_.tree().set_drop([session = session_.get()](NodeId node, Kept what) {
    constexpr off_t kAttributesOnly = -1;
    // ENOENT: the kernel does not know the file any more.
    fuse_lowlevel_notify_inval_inode(session, node, what == Kept::pages ? 0 : kAttributesOnly, 0);
  });
  if (fuse_session_mount(session_.get(), directory_.c_str()) != 0) {
    const std::string line = taken_line();
    throw Error(EPERM, "mount on", options.directory,
                "be root with CAP_SYS_ADMIN, or install fuse3 (fusermount3)" +
                    std::string(options.allow_other ? " and allow user_allow_other in /etc/fuse.conf" : "") +
                    (line.empty() ? "" : ": " + line));
  }
  take_lines(false);
  if (const int error = fuse_session_custom_io(session_.get(), &device_io(), fuse_session_fd(session_.get()));
      error != 0)
    throw Error(-error, "mount on", options.directory, "");
  device_ = mounted_device(directory_);
}

bool Session::is_here() const { return !device_ || mounted_device(directory_) == device_; }

Session::~Session() {
  stop();
  if (session_ == nullptr) return;
  if (!is_here()) forget_mount_point();
  system_.passthrough().end();
  fuse_session_unmount(session_.get());
}

/// libfuse does not unmount where its descriptor reports an error, as this pipe without a reader does. What was the
/// device is closed with it, which ends the mount wherever it is still used.
void Session::forget_mount_point() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  const UniqueFd writer(ends[1]);
  ::close(ends[0]);
  ::dup3(writer.get(), fuse_session_fd(session_.get()), O_CLOEXEC);
}

void Session::work() {
  fuse_buf buffer{};  // NOLINT(bugprone-invalid-enum-default-initialization): no flags
  while (!stopping_.load(std::memory_order_relaxed) && fuse_session_exited(session_.get()) == 0) {
    const int got = fuse_session_receive_buf(session_.get(), &buffer);
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got < 0) take_failure(-got);
    if (got <= 0) break;
    fuse_session_process_buf(session_.get(), &buffer);
  }
  std::free(buffer.mem);
  const std::uint64_t one = 1;
  // As full as can be: it is readable.
  if (::write(ended_.get(), &one, sizeof one) < 0) log::write(log::Level::debug, "wherry mount: a thread ends");
  working_.fetch_sub(1, std::memory_order_release);  // ENDED
}

void Session::take_failure(int error) {
  failed_.store(true, std::memory_order_relaxed);
  log::write(log::Level::error, "wherry mount: /dev/fuse: " + std::system_category().message(error));
}

void Session::start() {
  struct sigaction interrupt{};
  interrupt.sa_handler = [](int) {};
  ::sigaction(kInterrupt, &interrupt, nullptr);
  try {
    system_.locks().start();
    system_.delegations().start([this](NodeId node) { system_.tree().drop(node, Kept::attributes); });
    while (threads_.size() < count_) {
      threads_.emplace_back([this] { work(); });
      working_.fetch_add(1, std::memory_order_relaxed);
    }
  } catch (const std::system_error& error) {
    throw Error(error.code().value(), "start the threads of", directory_, "allow more processes (ulimit -u, pids.max)");
  }
  struct stat found{};
  if (::stat(directory_.c_str(), &found) != 0) throw Error(errno, "look at the mount on", directory_, "");
  system_.passthrough().check();
}

bool Session::wait(int signals) {
  std::array<pollfd, 2> wanted{{{signals, POLLIN, 0}, {ended_.get(), POLLIN, 0}}};
  while (::poll(wanted.data(), wanted.size(), -1) < 0 && errno == EINTR) continue;
  const bool is_used = wanted[1].revents == 0 && is_here() && unmount(directory_, false) != 0;
  if (is_used) {
    // What programs have mapped and changed is written first.
    const UniqueFd root(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (root.valid()) ::syncfs(root.get());
  }
  stop();
  if (is_used) serve_what_waits();
  return !failed_.load(std::memory_order_relaxed);
}

/// Hosts before Linux 6.16 wait in syncfs until pages are on their way, not until they are written.
void Session::serve_what_waits() {
  const int device = fuse_session_fd(session_.get());
  ::fcntl(device, F_SETFL, ::fcntl(device, F_GETFL) | O_NONBLOCK);
  fuse_buf buffer{};  // NOLINT(bugprone-invalid-enum-default-initialization): no flags
  for (const auto end = std::chrono::steady_clock::now() + kLongestEnd; std::chrono::steady_clock::now() < end;) {
    const int got = fuse_session_receive_buf(session_.get(), &buffer);
    if (got == -EINTR) continue;
    if (got <= 0) break;
    fuse_session_process_buf(session_.get(), &buffer);
  }
  std::free(buffer.mem);
}

/// A signal that comes before a thread waits is lost: it is sent again until all have ended.
void Session::stop() {
  // While requests are served: these may wait for the kernel, which waits for pages.
  system_.locks().stop();
  system_.delegations().stop();
  stopping_.store(true, std::memory_order_relaxed);
  while (working_.load(std::memory_order_acquire) != 0) {  // ENDED
    for (std::thread& thread : threads_) ::pthread_kill(thread.native_handle(), kInterrupt);
    std::this_thread::sleep_for(10ms);
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace wherry::file::mount
