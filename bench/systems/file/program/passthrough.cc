// SPDX-License-Identifier: Apache-2.0
#define FUSE_USE_VERSION 314
#include "bench/systems/file/program/passthrough.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fuse_lowlevel.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sched.h>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"

namespace wherry::bench::file {
namespace {

/// Seconds that the kernel may keep names and attributes, as libfuse's own example has it.
constexpr double kKept = 1.0;

/// Two files with the same content have the same.
using Stamp = std::tuple<time_t, long, off_t>;

Stamp stamp_of(int file) {
  struct stat status{};
  ::fstat(file, &status);
  return {status.st_ctim.tv_sec, status.st_ctim.tv_nsec, status.st_size};
}

/// A file that the kernel knows.
struct Inode {
  UniqueFd file;  // O_PATH
  std::pair<dev_t, ino_t> key;
  std::uint64_t lookups = 0;
  Stamp cached;  // What the kernel's pages are of.
};

std::string libfuses_words;

void note(fuse_log_level /*level*/, const char* format, va_list arguments) {
  std::array<char, 500> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  libfuses_words += text.data();
}

}  // namespace

/// What its functions are called for.
struct Passthrough::State {
  bool cached = false;
  bool writes_back = false;
  UniqueFd folder{};  // O_PATH, below the mount
  fuse_session* session = nullptr;
  std::mutex mutex{};
  std::map<std::pair<dev_t, ino_t>, Inode> inodes{};

  static State& of(fuse_req_t request) { return *static_cast<State*>(fuse_req_userdata(request)); }
  /// The kernel says a file by its place in memory, as libfuse's own examples have it.
  static Inode& inode(fuse_ino_t number) {
    return *reinterpret_cast<Inode*>(number);  // NOLINT(performance-no-int-to-ptr): it was made of one
  }
  int file(fuse_ino_t number) const { return number == FUSE_ROOT_ID ? folder.get() : inode(number).file.get(); }

  static void init(void* /*user*/, fuse_conn_info* connection) {
    if ((connection->capable & FUSE_CAP_WRITEBACK_CACHE) != 0) connection->want |= FUSE_CAP_WRITEBACK_CACHE;
  }

  static void init_plain(void* /*user*/, fuse_conn_info* /*connection*/) {}

  static void lookup(fuse_req_t request, fuse_ino_t /*folder*/, const char* name) {
    State& own = of(request);
    UniqueFd file(::openat(own.folder.get(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    fuse_entry_param found{};
    if (!file.valid() || ::fstat(file.get(), &found.attr) != 0) return void(fuse_reply_err(request, errno));
    if (!S_ISREG(found.attr.st_mode)) return void(fuse_reply_err(request, EOPNOTSUPP));
    const std::pair key(found.attr.st_dev, found.attr.st_ino);
    found.attr_timeout = found.entry_timeout = kKept;
    {
      const std::lock_guard lock(own.mutex);
      Inode& one = own.inodes[key];
      if (one.lookups++ == 0) one = {std::move(file), key, 1, {}};
      found.ino = reinterpret_cast<fuse_ino_t>(&one);
    }
    fuse_reply_entry(request, &found);
  }

  static void forget(fuse_req_t request, fuse_ino_t number, std::uint64_t lookups) {
    State& own = of(request);
    {
      const std::lock_guard lock(own.mutex);
      Inode& one = inode(number);
      one.lookups -= lookups;
      if (one.lookups == 0) own.inodes.erase(std::pair(one.key));
    }
    fuse_reply_none(request);
  }

  static void getattr(fuse_req_t request, fuse_ino_t number, fuse_file_info* /*info*/) {
    struct stat status{};
    if (::fstat(of(request).file(number), &status) != 0) return void(fuse_reply_err(request, errno));
    fuse_reply_attr(request, &status, kKept);
  }

  /// Times alone: the kernel tells them when it has written a file back.
  static void setattr(fuse_req_t request, fuse_ino_t number, struct stat* to, int which, fuse_file_info* /*info*/) {
    if ((which & ~(FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_CTIME)) != 0) return void(fuse_reply_err(request, EOPNOTSUPP));
    const std::array<timespec, 2> times{timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, to->st_mtim};
    if (::utimensat(AT_FDCWD, name_of(inode(number).file.get()).c_str(), times.data(), 0) != 0) {
      return void(fuse_reply_err(request, errno));
    }
    getattr(request, number, nullptr);
  }

  static std::string name_of(int file) { return fmt::format("/proc/self/fd/{}", file); }

  static void open(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
    State& own = of(request);
    int flags = info->flags & ~O_NOFOLLOW;
    // The kernel reads what is around a write, and knows itself where a file ends.
    if (own.writes_back && (flags & O_ACCMODE) == O_WRONLY) flags = (flags & ~O_ACCMODE) | O_RDWR;
    if (own.writes_back) flags &= ~O_APPEND;
    const int file = ::open(name_of(own.file(number)).c_str(), flags | O_CLOEXEC);
    if (file < 0) return void(fuse_reply_err(request, errno));
    info->fh = static_cast<std::uint64_t>(file);
    info->direct_io = own.cached ? 0 : 1;
    {
      const std::lock_guard lock(own.mutex);
      const Stamp now = stamp_of(file);
      info->keep_cache = std::exchange(inode(number).cached, now) == now ? 1 : 0;
    }
    fuse_reply_open(request, info);
  }

  static fuse_bufvec bytes_of(const fuse_file_info* info, off_t offset, std::size_t size) {
    fuse_bufvec bytes = FUSE_BUFVEC_INIT(size);
    bytes.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
    bytes.buf[0].fd = static_cast<int>(info->fh);
    bytes.buf[0].pos = offset;
    return bytes;
  }

  static void read(fuse_req_t request, fuse_ino_t /*number*/, std::size_t size, off_t offset, fuse_file_info* info) {
    // More than twice as fast for 1 MiB as fuse_reply_data, by splice or with the new buffer that it makes each time.
    thread_local std::vector<char> bytes;
    if (bytes.size() < size) bytes.resize(size);
    const ssize_t got = ::pread(static_cast<int>(info->fh), bytes.data(), size, offset);
    if (got < 0) return void(fuse_reply_err(request, errno));
    fuse_reply_buf(request, bytes.data(), static_cast<std::size_t>(got));
  }

  static void write(fuse_req_t request, fuse_ino_t /*number*/, fuse_bufvec* from, off_t offset, fuse_file_info* info) {
    fuse_bufvec to = bytes_of(info, offset, fuse_buf_size(from));
    const ssize_t written = fuse_buf_copy(&to, from, static_cast<fuse_buf_copy_flags>(0));
    if (written < 0) return void(fuse_reply_err(request, static_cast<int>(-written)));
    fuse_reply_write(request, static_cast<std::size_t>(written));
  }

  static void flush(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* /*info*/) { fuse_reply_err(request, 0); }

  static void fsync(fuse_req_t request, fuse_ino_t /*number*/, int data_only, fuse_file_info* info) {
    const int file = static_cast<int>(info->fh);
    fuse_reply_err(request, (data_only != 0 ? ::fdatasync(file) : ::fsync(file)) == 0 ? 0 : errno);
  }

  static void release(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
    const UniqueFd file(static_cast<int>(info->fh));
    if ((info->flags & O_ACCMODE) != O_RDONLY) {
      const std::lock_guard lock(of(request).mutex);
      inode(number).cached = stamp_of(file.get());
    }
    fuse_reply_err(request, 0);
  }
};

Passthrough::Passthrough(const std::string& folder, Cache cache) : state_(std::make_unique<State>()) {
  state_->cached = cache != Cache::none;
  state_->writes_back = cache == Cache::kernel;
  state_->folder = UniqueFd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!state_->folder.valid()) throw std::system_error(errno, std::system_category(), folder);
  fuse_lowlevel_ops calls{};
  calls.init = state_->writes_back ? State::init : State::init_plain;
  calls.lookup = State::lookup;
  calls.forget = State::forget;
  calls.getattr = State::getattr;
  calls.setattr = State::setattr;
  calls.open = State::open;
  calls.read = State::read;
  calls.write_buf = State::write;
  calls.flush = State::flush;
  calls.fsync = State::fsync;
  calls.release = State::release;
  std::array words{std::string("wherry-bench-file"), std::string("-o"), std::string("default_permissions")};
  std::array<char*, words.size()> pointers{words[0].data(), words[1].data(), words[2].data()};
  fuse_args arguments = FUSE_ARGS_INIT(pointers.size(), pointers.data());
  fuse_set_log_func(note);
  state_->session = fuse_session_new(&arguments, &calls, sizeof(calls), state_.get());
  fuse_opt_free_args(&arguments);
  if (state_->session == nullptr || fuse_session_mount(state_->session, folder.c_str()) != 0) {
    while (libfuses_words.ends_with('\n')) libfuses_words.pop_back();
    if (state_->session != nullptr) fuse_session_destroy(state_->session);
    throw std::runtime_error(libfuses_words.empty() ? "libfuse cannot mount" : libfuses_words);
  }
}

Passthrough::~Passthrough() {
  fuse_session_unmount(state_->session);
  fuse_session_destroy(state_->session);
}

const char* Passthrough::version() { return fuse_pkgversion(); }

int Passthrough::run() {
  fuse_loop_config* const how = fuse_loop_cfg_create();
  fuse_loop_cfg_set_clone_fd(how, 1);
  const int status = fuse_session_loop_mt(state_->session, how);
  fuse_loop_cfg_destroy(how);
  return status == 0 ? 0 : 1;
}

}  // namespace wherry::bench::file
