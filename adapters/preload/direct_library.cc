// SPDX-License-Identifier: Apache-2.0
#include "direct_library.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string_view>

#include "base/loaded_libraries.hpp"
#include "descriptors.hpp"
#include "direct_words.hpp"
#include "file/mapped/copies_under_way.hpp"
#include "file/mapped/fault_signals.hpp"
#include "file/mapped/guarded_copy.hpp"
#include "next.hpp"
#include "sharing.hpp"

namespace wherry::preload {
namespace {

constinit std::atomic<const Direct*> direct{nullptr};
constinit std::atomic<bool> is_missing{false};
constinit std::atomic<bool> opening{false};
constinit std::atomic<bool> is_ending{false};
constinit std::atomic<int> inside{0};
enum class AfterFork : std::uint8_t { no, quiet, busy };
constinit std::atomic<AfterFork> after_fork{AfterFork::no};  // what forget_after_fork() must still be told

constinit thread_local CallState call_state __attribute__((tls_model("initial-exec")));

bool may_wait() {
  if (is_ending.load(std::memory_order_relaxed) || is_over(call_state.deadline_ms)) return false;
  if (call_state.holds_offset && is_sharing_all()) return false;
  std::uint64_t pending = 0;
  ::syscall(SYS_rt_sigpending, &pending, sizeof pending);
  pending |= file::mapped::kept_faults();
  return (pending & ~call_state.mask_before) == 0;
}

/// Both ranges are mapped as a rule. The kernel copies if the thread does not take faults.
bool copy_checked(void* to, const void* from, std::size_t bytes) {
  {
    const file::mapped::CopyUnderWay here;
    if (here && file::mapped::catches_faults() && file::mapped::takes_faults() &&
        file::mapped::copy_or_fault(to, from, bytes))
      return true;
  }
  const iovec source{const_cast<void*>(from), bytes};
  const iovec destination{to, bytes};
  return ::process_vm_writev(::getpid(), &source, 1, &destination, 1, 0) == static_cast<ssize_t>(bytes);
}

constexpr DirectCaller kCaller{.may_wait = may_wait, .copy = copy_checked};

}  // namespace

DirectCall::DirectCall(std::uint32_t most_ms, bool holds_offset) noexcept : before_(call_state) {
  const std::uint64_t all = ~std::uint64_t{0};
  if (!before_.active) {
    // The C library's function: this library's own syscall() disables cancellation, and a handler may leave by a jump.
    WHERRY_NEXT(syscall, SYS_rt_sigprocmask, SIG_SETMASK, &all, &call_state.mask_before, sizeof all);
    inside.fetch_add(1, std::memory_order_seq_cst);  // ENDING barrier
  }
  // Only after signals are blocked: a handler that leaves by a jump would leave cancellation disabled.
  not_cancelled_.emplace();
  call_state.active = true;
  call_state.deadline_ms = now_ms() + most_ms;
  call_state.holds_offset = call_state.holds_offset || holds_offset;
}

DirectCall::~DirectCall() {
  const std::uint64_t mask = call_state.mask_before;
  call_state = before_;
  if (before_.active) return;
  inside.fetch_sub(1, std::memory_order_release);  // INSIDE release: the library's own data
  // Before signals are unblocked: a handler may leave by a jump, and then nothing below is done.
  not_cancelled_.reset();
  WHERRY_NEXT(syscall, SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

void DirectCall::allow(std::uint32_t most_ms) noexcept { call_state.deadline_ms = now_ms() + most_ms; }

bool is_in_direct() noexcept { return call_state.active; }

void become_thread_of_direct() noexcept { call_state.active = true; }

DirectOpening::DirectOpening() noexcept
    : is_held_(!opening.exchange(true, std::memory_order_acquire)) {}  // OPENING acquire

DirectOpening::~DirectOpening() {
  if (is_held_) opening.store(false, std::memory_order_release);  // OPENING release
}

const Direct* direct_library() noexcept { return direct.load(std::memory_order_acquire); }  // DIRECT acquire

const Direct* load_direct_library() noexcept {
  if (is_missing.load(std::memory_order_relaxed)) return nullptr;
  close_direct_after_fork(false);
  if (const Direct* const loaded = direct.load(std::memory_order_acquire)) return loaded;  // DIRECT acquire
  std::array<char, PATH_MAX> path{};
  const char* const own = path_of_this_library();
  const char* const slash = own == nullptr ? nullptr : std::strrchr(own, '/');
  const std::string_view name = kDirectLibrary;
  const std::size_t folder = slash == nullptr ? path.size() : static_cast<std::size_t>(slash - own) + 1;
  const Direct* made = nullptr;
  if (folder + name.size() < path.size()) {
    std::memcpy(path.data(), own, folder);
    std::memcpy(path.data() + folder, name.data(), name.size());
    void* const library = ::dlopen(path.data(), RTLD_NOW | RTLD_LOCAL);
    auto* const get = library == nullptr ? nullptr : reinterpret_cast<GetDirect*>(::dlsym(library, kGetDirect));
    if (get != nullptr) made = get(kCaller);
    // Clears the error, which the program would get from its own dlerror().
    if (made == nullptr) ::dlerror();
  }
  if (made == nullptr) is_missing.store(true, std::memory_order_relaxed);
  direct.store(made, std::memory_order_release);  // DIRECT release: the library's own data
  return made;
}

void never_load_direct() noexcept { is_missing.store(true, std::memory_order_relaxed); }

bool is_direct_loaded() noexcept {
  return direct.load(std::memory_order_relaxed) != nullptr || is_missing.load(std::memory_order_relaxed);
}

void load_direct() noexcept {
  const DirectCall here(kMostOpenMs);
  if (const DirectOpening turn; turn) (void)load_direct_library();
}

bool is_direct_ending() noexcept { return is_ending.load(std::memory_order_seq_cst); }  // ENDING barrier

bool begin_end_of_direct() noexcept {
  return !is_ending.exchange(true, std::memory_order_seq_cst);  // ENDING barrier: no transfer begins from now on
}

void await_direct_calls() noexcept {
  wait_while([] { return inside.load(std::memory_order_seq_cst) != 0; });  // INSIDE acquire, ENDING barrier
}

void forget_direct_library_after_fork() noexcept {
  // Loads first: stores would cost the child its own pages.
  const bool quiet = inside.load(std::memory_order_relaxed) == 0;
  if (!quiet) inside.store(0, std::memory_order_relaxed);
  if (opening.load(std::memory_order_relaxed)) opening.store(false, std::memory_order_relaxed);
  if (direct.load(std::memory_order_relaxed) != nullptr)
    after_fork.store(quiet ? AfterFork::quiet : AfterFork::busy, std::memory_order_relaxed);
}

void close_direct_after_fork(bool handled) noexcept {
  if (after_fork.load(std::memory_order_relaxed) == AfterFork::no) return;
  const bool quiet = after_fork.exchange(AfterFork::no, std::memory_order_relaxed) == AfterFork::quiet;
  const DirectCall here(kMostCloseMs);
  direct.load(std::memory_order_acquire)->forget_after_fork(quiet && handled);  // DIRECT acquire
}

}  // namespace wherry::preload
