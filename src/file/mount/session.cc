// SPDX-License-Identifier: Apache-2.0
#include "file/mount/session.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <system_error>
#include <utility>

#include <wherry/error.hpp>

#include "base/log.hpp"
#include "file/mount/device_io.hpp"
#include "file/mount/fault_points.hpp"
#include "file/mount/kernel_limits.hpp"
#include "file/mount/mount_point.hpp"
#include "file/mount/operations.hpp"

namespace wherry::file::mount {
namespace {

using namespace std::chrono_literals;

/// Interrupts a thread that waits for a request.
constexpr int kInterrupt = SIGUSR2;
/// For programs that never stop sending requests.
constexpr auto kLongestEnd = 5s;

/// The last line that libfuse wrote during mounting: it explains a failure.
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

std::uint64_t random_number() {
  std::random_device chance;
  return std::uint64_t{chance()} << 32 | chance();
}

UniqueFd duplicate_of(const UniqueFd& memory) {
  UniqueFd duplicate(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0));
  if (!duplicate.valid()) throw Error(errno, "keep", "writes", "raise the limit of open files (ulimit -n)");
  return duplicate;
}

/// Makes an event readable.
void set(const UniqueFd& event) {
  const std::uint64_t one = 1;
  // If the counter is full, it is readable already.
  if (::write(event.get(), &one, sizeof one) < 0) log::write(log::Level::debug, "wherry mount: an event was there");
}

/// Makes a call that may wait for requests to this mount, in a child without any descriptor of this process. A process
/// that serves the mount must not make it: once killed, it answers no request, so the call does not return and the
/// device stays open.
/// @param call  returns 0 or an errno value, which this function returns
template <class Call>
int in_child(Call call) noexcept {
  const pid_t child = ::fork();
  if (child == 0) {
    ::closefrom(0);
    for (int number = 0; number <= STDERR_FILENO; ++number) (void)::open("/dev/null", O_RDWR);
    ::_exit(call());
  }
  if (child < 0) return errno;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

/// Writes what programs have changed in mappings.
int flush(const std::string& directory) {
  const UniqueFd root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return root.valid() && ::syncfs(root.get()) == 0 ? 0 : errno;
}

void destroy(fuse_session* session) { fuse_session_destroy(session); }

/// A few pieces of data. The rings of all connections share the processor's caches with the kernel's pages, which they
/// fill: with larger rings a first read is slower.
constexpr std::size_t kRingBytes = std::size_t{512} << 10;

std::string settings_of(const MountOptions& options, bool read_only) {
  std::string settings = "default_permissions,subtype=wherry,fsname=" + options.address;
  if (options.allow_other) settings += ",allow_other";
  if (read_only) settings += ",ro";
  return settings;
}

}  // namespace

HostOptions Session::host_options(const MountOptions& options, const KeptSnapshot& left) {
  HostOptions made{.address = options.address, .timeout = options.timeout, .ring_bytes = kRingBytes};
  made.at = at_fault_point.load(std::memory_order_relaxed);
  if (state_ != nullptr) {
    made.process = {.client = left.number(layout::KeptWord::client),
                    .number = left.number(layout::KeptWord::daemon) + 1};
    if (made.process.client == 0) made.process.client = random_number();
    KeptState::Batch batch(state_.get());
    batch.add(layout::KeptWord::client, made.process.client);
    batch.add(layout::KeptWord::daemon, made.process.number);
  }
  if (options.passthrough) {
    made.shorten = [this](std::unique_ptr<StreamConnection> stream) {
      return LocalConnection::instead_of(std::move(stream), local_);
    };
  }
  return made;
}

Session::Left::Left(KeptDescriptors& kept, std::size_t write_buffer)
    : memory(kept.take({KeptKind::state})),
      device(kept.take({KeptKind::device})),
      writes(kept.take({KeptKind::memory})) {
  if (!writes.valid()) writes = WriteBuffer::make(write_buffer);
  if (!kept.has_supervisor()) return;
  if (!memory.valid()) memory = KeptState::make_memory();
  state = std::make_unique<KeptState>(memory);
  if (device.valid()) snapshot = state->load();
}

Session::Session(const MountOptions& options, KeptDescriptors& kept)
    : Session(options, kept, Left(kept, options.write_buffer)) {}

Session::Session(const MountOptions& options, KeptDescriptors& kept, Left left)
    : kept_(kept),
      takes_over_(left.device.valid()),
      state_memory_(std::move(left.memory)),
      state_(std::move(left.state)),
      write_memory_(std::move(left.writes)),
      directory_(takes_over_ ? left.snapshot.text(layout::KeptWord::directory)
                             : (check_fuse(options.directory), prepare_mount_point(options.directory))),
      system_(host_options(options, left.snapshot), options.connections, duplicate_of(write_memory_),
              {.state = state_.get(),
               .descriptors = state_ ? &kept : nullptr,
               .left = takes_over_ ? &left.snapshot : nullptr}),
      ended_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      answered_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      session_(nullptr, destroy),
      count_(options.threads) {
  if (!ended_.valid() || !answered_.valid())
    throw Error(errno, "mount on", options.directory, "raise the limit of open files (ulimit -n)");
  prepare(options);
  if (takes_over_)
    go_on(std::move(left.device), left.snapshot);
  else
    mount(options);
}

void Session::go_on(UniqueFd device, const KeptSnapshot& left) {
  take_lines(false);
  device_ = left.number(layout::KeptWord::device);
  const int number = device.release();
  if (const int error = fuse_session_custom_io(session_.get(), &device_io(), number); error != 0)
    throw Error(-error, "take over the mount on", directory_, "");
  if (!agree_again(session_.get(), left.text(layout::KeptWord::first_request)))
    throw Error(EPROTO, "take over the mount on", directory_, "unmount it, and mount it again");
  if (left.number(layout::KeptWord::passthrough) == 0) system_.passthrough().end();
}

/// From now on the supervisor can start another daemon.
void Session::hand_over() {
  if (takes_over_ || state_ == nullptr || !has_resend() || !device_) return;
  {
    KeptState::Batch batch(state_.get());
    batch.add_text(layout::KeptWord::directory, directory_);
    batch.add(layout::KeptWord::device, *device_);
    batch.add(layout::KeptWord::passthrough, system_.passthrough().is_on() ? 1 : 0);
  }
  pass(FaultPoint::handing_over);
  kept_.report_mounted(directory_);
  kept_.keep({KeptKind::state}, state_memory_.get());
  kept_.keep({KeptKind::memory}, write_memory_.get());
  kept_.keep({KeptKind::device}, fuse_session_fd(session_.get()));
}

void Session::prepare(const MountOptions& options) {
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
    // Ignores ENOENT: the kernel no longer knows the file.
    fuse_lowlevel_notify_inval_inode(session, node, what == Kept::pages ? 0 : kAttributesOnly, 0);
  });
}

void Session::mount(const MountOptions& options) {
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
  const bool here = is_here();
  if (!here) forget_mount_point();
  system_.passthrough().end();
  fuse_session_unmount(session_.get());
  // libfuse does not know the directory of a mount that was taken over.
  if (takes_over_ && here) unmount(directory_, true);
}

/// Keeps libfuse from unmounting: it does not if its descriptor reports an error, as this pipe without a reader does.
/// The device is closed by the dup3, which ends the mount wherever it is still used.
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
    // Once it is unmounted, every error is the end: ECONNABORTED was seen in place of ENODEV.
    if (got < 0 && is_here()) take_failure(-got);
    if (got <= 0) break;
    fuse_session_process_buf(session_.get(), &buffer);
    system_.tree().attempts().end();
    if (!served_.load(std::memory_order_relaxed) && !served_.exchange(true, std::memory_order_relaxed)) {
      if (takes_over_)
        kept_.report_served();
      else if (fuse_session_exited(session_.get()) == 0)
        set(answered_);
    }
  }
  std::free(buffer.mem);
  set(ended_);
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
    system_.locks().start(fuse_session_fd(session_.get()));
    WriteBehind& write_behind = system_.tree().write_behind();
    write_behind.replay(*system_.tree().hosts().any().operator->());
    pass(FaultPoint::replayed);
    write_behind.start([this] { return system_.delegations().client(); });
    system_.delegations().start([this](NodeId node) { system_.tree().drop(node, Kept::attributes); }, write_behind);
    if (const int error = takes_over_ ? ask_to_resend(fuse_session_fd(session_.get())) : 0; error != 0)
      log::write(log::Level::error, "wherry mount: cannot make the kernel repeat unanswered requests: " +
                                        std::system_category().message(error));
    while (threads_.size() < count_) {
      threads_.emplace_back([this] { work(); });
      working_.fetch_add(1, std::memory_order_relaxed);
    }
  } catch (const std::system_error& error) {
    throw Error(error.code().value(), "start the threads of", directory_, "allow more processes (ulimit -u, pids.max)");
  }
  if (takes_over_) return;
  wait_for_kernel();
  system_.passthrough().check();
  if (device_) raise_kernel_limits(*device_);
  hand_over();
}

/// Returns once the kernel and this process have agreed, and the server has answered. Makes no call on the mount; see
/// in_child.
void Session::wait_for_kernel() {
  std::array<pollfd, 2> wanted{{{answered_.get(), POLLIN, 0}, {ended_.get(), POLLIN, 0}}};
  while (::poll(wanted.data(), wanted.size(), -1) < 0 && errno == EINTR) continue;
  if (wanted[0].revents == 0) throw Error(ENOTCONN, "check the mount on", directory_, "");
  struct stat found{};
  if (const int error = system_.attributes().get(kRootNode, found); error != 0)
    throw Error(error, "check the mount on", directory_, "");
  if (!is_here()) throw Error(ENOTCONN, "check the mount on", directory_, "");
}

bool Session::wait(int signals) {
  std::array<pollfd, 3> wanted{{{signals, POLLIN, 0}, {ended_.get(), POLLIN, 0}, {kept_.supervisor(), 0, 0}}};
  while (::poll(wanted.data(), wanted.size(), -1) < 0 || (wanted[0].revents == 0 && wanted[1].revents == 0)) {
    if (wanted[2].revents == 0) continue;
    log::write(log::Level::warning,
               "wherry mount: the supervisor has ended: if this process is killed, the mount ends");
    wanted[2].fd = -1;
  }
  const bool is_used =
      wanted[1].revents == 0 && is_here() && in_child([this] { return unmount(directory_, false); }) != 0;
  if (const int error = is_used ? in_child([this] { return flush(directory_); }) : 0; error != 0)
    log::write(log::Level::error,
               "wherry mount: changes of mappings may not be written: " + std::system_category().message(error));
  stop();
  if (is_used) serve_what_waits();
  return !failed_.load(std::memory_order_relaxed);
}

/// Before Linux 6.16 syncfs waits until pages are being sent, not until they are written.
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

/// A signal that arrives before a thread waits is lost, so it is sent again until all threads have ended.
void Session::stop() {
  // While requests are still served: these threads may wait for the kernel, which waits for pages.
  system_.locks().stop();
  system_.delegations().stop();
  stopping_.store(true, std::memory_order_relaxed);
  while (working_.load(std::memory_order_acquire) != 0) {  // ENDED
    for (std::thread& thread : threads_) ::pthread_kill(thread.native_handle(), kInterrupt);
    std::this_thread::sleep_for(10ms);
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  system_.tree().write_behind().stop();
}

}  // namespace wherry::file::mount
