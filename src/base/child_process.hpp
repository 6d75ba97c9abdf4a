// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: child processes, and memory shared with them.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace wherry {

/// A forked process. It is killed when its parent dies or this object is destroyed.
class Child {
 public:
  /// Runs `body` in a new process. The exit status is 0, or 1 if `body` throws or returns false. Fork while this
  /// process has one thread: the child has only the thread that forked.
  template <class Body>
    requires std::invocable<Body&>
  explicit Child(Body&& body) {
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::system_error(errno, std::system_category(), "fork");
    if (pid_ == 0) run(std::forward<Body>(body), parent);
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    kill();
    if (pid_ > 0) (void)wait();
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill() const {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  /// Waits until the process has ended. Returns its exit status, or -1 if a signal ended it.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  template <class Body>
  [[noreturn]] static void run(Body&& body, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have been killed before that call. 0: the parent is outside the child's namespace, and not
    // visible.
    if (const pid_t now = ::getppid(); now != parent && now != 0) std::_Exit(1);
    int status = 1;
    try {
      status = body() ? 0 : 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child %d: %s\n", ::getpid(), error.what());
    }
    std::_Exit(status);  // no destructors of the parent's objects, no second flush of its output
  }

  pid_t pid_ = -1;
};

/// One T in memory that this process shares with the children it forks afterwards.
template <class T>
class SharedValue {
 public:
  SharedValue() {
    void* memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    value_ = new (memory) T{};
  }
  SharedValue(const SharedValue&) = delete;
  SharedValue& operator=(const SharedValue&) = delete;
  ~SharedValue() { ::munmap(value_, sizeof(T)); }
  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  T* value_;
};

inline std::int64_t steady_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace wherry
