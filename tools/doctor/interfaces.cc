// SPDX-License-Identifier: Apache-2.0
//
// The kernel interfaces that Wherry uses, each tried by a call: a version number does not show what a container
// forbids.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "base/resize.hpp"
#include "base/unique_fd.hpp"
#include "doctor/check.hpp"

namespace wherry::tools::doctor {
namespace {

int status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return EPERM << 8;  // as if it had exited so
  }
  return status;
}

constexpr const char* kContainerAdvice = "if this is a container, its seccomp profile must allow it";

std::string reason(const char* call) { return fmt::format("{}: {}", call, std::strerror(errno)); }

Finding refused(const char* call, Verdict verdict = Verdict::fail, const char* advice = kContainerAdvice) {
  return {verdict, reason(call), advice};
}

}  // namespace

Finding check_memory_files() {
  const UniqueFd file(memfd_create("wherry.doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return refused("memfd_create");
  if (resize(file.get(), 4096) != 0) return refused("ftruncate");
  void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return refused("mmap");
  munmap(mapped, 4096);
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return refused("F_ADD_SEALS");
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0) {
    return refused("F_SEAL_FUTURE_WRITE", Verdict::warn,
                   "other processes of this user could alter what wherry top shows");
  }
  return {Verdict::ok, "memfd_create and its seals work", ""};
}

Finding check_sockets() {
  const UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return refused("socket");
  // With only the family in the address, the kernel chooses an unused abstract name.
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&name), sizeof(sa_family_t)) != 0) return refused("bind");
  socklen_t length = sizeof(name);
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &length) != 0) return refused("getsockname");
  if (listen(listener.get(), 1) != 0) return refused("listen");
  const UniqueFd connector(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (connect(connector.get(), reinterpret_cast<sockaddr*>(&name), length) != 0) return refused("connect");
  ucred peer{};
  length = sizeof(peer);
  if (getsockopt(connector.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return refused("SO_PEERCRED");
  if (peer.pid != getpid() || peer.uid != geteuid()) {
    return {Verdict::fail, fmt::format("SO_PEERCRED says process {} of user {}", peer.pid, peer.uid),
            "the kernel must vouch for who connects; user namespaces may not hide it"};
  }
  return {Verdict::ok, "abstract Unix sockets and peer credentials work", ""};
}

Finding check_waiting() {
  constexpr const char* kTicking = "without it a waiter polls once per millisecond; allow it in the seccomp profile";
  const UniqueFd bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell.valid()) return refused("eventfd");
  const UniqueFd poll(epoll_create1(EPOLL_CLOEXEC));
  if (!poll.valid()) return refused("epoll_create1");
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  if (epoll_ctl(poll.get(), EPOLL_CTL_ADD, bell.get(), &wanted) != 0) return refused("epoll_ctl");
  std::uint32_t word = 0;
  if (syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0) < 0) return refused("futex");
  if (eventfd_write(bell.get(), 1) != 0) return refused("write of an eventfd");
  pollfd polled{.fd = bell.get(), .events = POLLIN, .revents = 0};
  constexpr timespec kNow{};
  if (ppoll(&polled, 1, &kNow, nullptr) != 1) return refused("ppoll", Verdict::warn, kTicking);
  if (epoll_wait(poll.get(), &wanted, 1, 0) != 1) return refused("epoll_wait", Verdict::warn, kTicking);
  return {Verdict::ok, "eventfd, ppoll, epoll and futex work", ""};
}

// A child reads its parent's memory: that needs the same permission as between two unrelated processes of one user.
Finding check_peer_copy() {
  static volatile std::uint64_t word = 0x776865727279;  // in the parent; the child changes its own copy
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return refused("fork", Verdict::warn);
  if (child == 0) {
    const std::uint64_t expected = word;
    word = 0;
    std::uint64_t copy = 0;
    const iovec local{&copy, sizeof(copy)};
    const iovec remote{const_cast<std::uint64_t*>(&word), sizeof(word)};
    const bool copied = process_vm_readv(parent, &local, 1, &remote, 1, 0) == sizeof(copy) && copy == expected;
    _exit(copied ? 0 : errno == 0 ? EPROTO : errno);
  }
  const int status = status_of(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return {Verdict::ok, "process_vm_readv works between processes", ""};
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
  std::string scope = "0";
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  if (scope == "0") return refused("process_vm_readv", Verdict::warn);
  return {
      Verdict::warn, fmt::format("{} (ptrace_scope is {})", reason("process_vm_readv"), scope),
      "large messages go through the ring instead of straight between two buffers; sysctl kernel.yama.ptrace_scope=0 "
      "allows it"};
}

// A child takes a descriptor of its parent, as a client of `wherry serve` takes that of a file.
Finding check_lending() {
  const pid_t parent = getpid();
  const UniqueFd lent(eventfd(0, EFD_CLOEXEC));
  const pid_t child = lent.valid() ? fork() : -1;
  if (child < 0) return refused(lent.valid() ? "fork" : "eventfd", Verdict::warn);
  if (child == 0) {
    const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, parent, 0)));
    const bool taken = process.valid() && syscall(SYS_pidfd_getfd, process.get(), lent.get(), 0) >= 0;
    _exit(taken ? 0 : errno);
  }
  const int status = status_of(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {Verdict::ok, "pidfd_getfd works between processes", ""};
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
  return refused("pidfd_getfd", Verdict::warn,
                 "data of wherry serve goes through the server instead of by its descriptors; sysctl "
                 "kernel.yama.ptrace_scope=0, and a seccomp profile with pidfd_getfd, allow it");
}

namespace {

/// Whether userfaultfd can write-protect pages, also unpopulated ones. The same test as in src/memory/store_guard.cc.
bool protects_pages(const UniqueFd& faults) {
  constexpr std::uint64_t kUnpopulated = std::uint64_t{1} << 13;
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ
  uffdio_api api{.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP, .ioctls = 0};
  return ioctl(faults.get(), UFFDIO_API, &api) == 0 &&
         ((api.features & kUnpopulated) != 0 || madvise(nullptr, 0, kPopulateRead) == 0);
}

}  // namespace

Finding check_page_faults() {
  constexpr const char* kAdvice =
      "allow it: read and write permission on /dev/userfaultfd (Linux 6.1; docker run --device /dev/userfaultfd), or "
      "sysctl vm.unprivileged_userfaultfd=1";
  constexpr unsigned long kNew = 0xAA00;  // USERFAULTFD_IOC_NEW
  constexpr int kUserModeOnly = 1;
  const UniqueFd device(open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
  if (protects_pages(UniqueFd(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC)))) ||
      protects_pages(UniqueFd(ioctl(device.get(), kNew, O_CLOEXEC)))) {
    return {Verdict::ok, "other threads may store into memory that is being registered", ""};
  }
  if (protects_pages(UniqueFd(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly))))) {
    return {Verdict::warn, "a system call that stores into memory while that is first registered can fail with EFAULT",
            kAdvice};
  }
  return {Verdict::warn,
          fmt::format("{}: what other threads store into memory while that is first registered can be lost",
                      reason("userfaultfd")),
          kAdvice};
}

Finding check_io_uring() {
  std::array<std::byte, 120> parameters{};  // struct io_uring_params, all zero
  const long file = syscall(SYS_io_uring_setup, 1, parameters.data());
  if (file < 0) {
    return refused(
        "io_uring_setup", Verdict::warn,
        "file servers fall back to threads; see sysctl kernel.io_uring_disabled and the container's seccomp profile");
  }
  close(static_cast<int>(file));
  return {Verdict::ok, "permitted", ""};
}

Finding check_membarrier() {
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (commands < 0) return refused("membarrier", Verdict::warn, "not needed today: a full fence takes its place");
  return {Verdict::ok, "permitted", ""};
}

}  // namespace wherry::tools::doctor
