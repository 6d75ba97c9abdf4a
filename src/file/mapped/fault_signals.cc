// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/fault_signals.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "file/mapped/copies_under_way.hpp"
#include "file/mapped/guarded_copy.hpp"
#include "file/mapped/signals_blocked.hpp"

namespace wherry::file::mapped {
namespace {

enum class Mask : std::uint8_t { unknown, open, blocked };

[[gnu::tls_model("initial-exec")]] constinit thread_local Mask mask_of_thread = Mask::unknown;
// Reads by a thread with a blocked signal before its mask is read again: siglongjmp may have restored it.
constexpr std::uint8_t kReadsBlocked = 64;
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint8_t reads_blocked = 0;
// Number of live MaskChanges; a jump out of a handler may make it too small.
[[gnu::tls_model("initial-exec")]] constinit thread_local unsigned mask_changes = 0;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool switches_contexts = false;

// Of this thread; null: it has none.
[[gnu::tls_model("initial-exec")]] constinit thread_local FaultsUnblocked* unblocked = nullptr;

/// The program's action for a signal. Two copies: the handler reads one while the other is written.
struct Actions {
  static constexpr unsigned kReset = 1;  // set to SIG_DFL by SA_RESETHAND
  static constexpr unsigned kChange = 2;

  std::array<struct sigaction, 2> copies;
  std::atomic<unsigned> state;  // number of changes * kChange, with kReset

  static constexpr std::size_t index_of(unsigned state) { return state / kChange % 2; }
};
constinit std::array<Actions, 2> actions{};
constinit std::atomic<Sigaction> next_sigaction{nullptr};     // set: both signals are caught
constinit std::atomic<Sigaction> kernels_sigaction{nullptr};  // as next_sigaction, but set before the first signal is
                                                              // caught
constinit std::atomic<unsigned> ignored{0};                   // one bit per signal, and kReleased
constinit std::atomic<bool> changing{false};
constexpr unsigned kReleased = 4;  // no copy is allowed any more

constexpr std::size_t index_of(int signal) { return signal == SIGBUS ? 0 : 1; }

struct sigaction action_of(int signal, unsigned& state) {
  const Actions& both = actions[index_of(signal)];
  struct sigaction action{};
  do {
    state = both.state.load(std::memory_order_acquire);  // ACTION acquire: its fields
    action = both.copies[Actions::index_of(state)];
    std::atomic_thread_fence(std::memory_order_acquire);  // ACTION-GONE acquire: the change before
  } while (both.state.load(std::memory_order_relaxed) / Actions::kChange != state / Actions::kChange);
  if ((state & Actions::kReset) != 0) action.sa_handler = SIG_DFL;
  return action;
}

struct sigaction action_of(int signal) {
  unsigned state = 0;
  return action_of(signal, state);
}

/// Requires Changing.
void set_action(int signal, const struct sigaction& action) {
  Actions& both = actions[index_of(signal)];
  const unsigned next = (both.state.load(std::memory_order_relaxed) / Actions::kChange + 1) * Actions::kChange;
  std::atomic_thread_fence(std::memory_order_release);  // ACTION-GONE release: the change before
  both.copies[Actions::index_of(next)] = action;
  both.state.store(next, std::memory_order_release);  // ACTION release: its fields
}

/// The program's action for a signal that has arrived; for the signal handler. Takes no lock: its holder may be waiting
/// for the copy that was interrupted. With SA_RESETHAND only one thread gets the program's handler.
struct sigaction take_action(int signal) {
  std::atomic<unsigned>& state = actions[index_of(signal)].state;
  while (true) {
    unsigned seen = 0;
    const struct sigaction action = action_of(signal, seen);
    const bool has_handler = action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    if (!has_handler || (action.sa_flags & SA_RESETHAND) == 0 ||
        state.compare_exchange_strong(seen, seen | Actions::kReset, std::memory_order_relaxed)) {
      return action;
    }
  }
}

class Changing {
 public:
  Changing() noexcept {
    while (changing.exchange(true, std::memory_order_acquire)) sched_yield();  // CHANGING acquire: the actions
  }
  ~Changing() { changing.store(false, std::memory_order_release); }  // CHANGING release: the actions
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;

 private:
  SignalsBlocked blocked_;
};

void set_ignored(int signal, bool is_ignored) {
  const unsigned bit = 1U << index_of(signal);
  if (is_ignored) {
    ignored.fetch_or(bit, std::memory_order_relaxed);
  } else {
    ignored.fetch_and(~bit, std::memory_order_relaxed);
  }
}

/// The default of both signals ends the process: the instruction faults again, or the signal is sent again.
void end_by(int signal, const siginfo_t* info) {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  kernels_sigaction.load(std::memory_order_relaxed)(signal, &standard, nullptr);
  // The signal is blocked in its handler, and delivered when that returns.
  if (info->si_code <= 0) ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), signal);
}

/// Blocks what the kernel would block while the program's handler runs.
void set_mask_of_handler(int signal, const struct sigaction& action, const sigset_t& interrupted) {
  sigset_t mask;
  sigorset(&mask, &interrupted, &action.sa_mask);
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, signal);
  forget_signal_mask();
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

/// Runs with all signals blocked: a handler that interrupted it could not copy, since this signal is blocked meanwhile.
void on_fault(int signal, siginfo_t* info, void* context) {
  const bool by_kernel = info->si_code > 0;
  if (by_kernel && resume_after_fault(context)) return;
  if (!by_kernel && unblocked != nullptr) return unblocked->keep(signal, *info);
  const struct sigaction action = take_action(signal);
  if (action.sa_handler == SIG_IGN && !by_kernel) return;
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return end_by(signal, info);
  set_mask_of_handler(signal, action, static_cast<const ucontext_t*>(context)->uc_sigmask);
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
  forget_signal_mask();
}

/// The action to give the kernel for the program's action. While copies are in progress, the kernel must not ignore the
/// signal: a fault would end the process.
struct sigaction action_for_kernel(const struct sigaction& action, bool no_copies) {
  if (action.sa_handler == SIG_IGN && no_copies) return action;
  struct sigaction caught = action;
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) caught.sa_flags = SA_ONSTACK | SA_RESTART;
  caught.sa_flags = (caught.sa_flags & ~static_cast<int>(SA_RESETHAND)) | SA_SIGINFO;
  caught.sa_sigaction = on_fault;
  sigfillset(&caught.sa_mask);
  return caught;
}

bool catch_signal(int signal, Sigaction next) {
  struct sigaction before{};
  if (next(signal, nullptr, &before) != 0) return false;
  set_action(signal, before);
  set_ignored(signal, before.sa_handler == SIG_IGN);
  const struct sigaction caught = action_for_kernel(before, true);
  return next(signal, &caught, nullptr) == 0;
}

constexpr std::uint64_t mask_bit(int signal) { return std::uint64_t{1} << (signal - 1); }

/// Of the two signals alone. Uses the system call, as a hook of the C library's function may look at the mask.
void change_mask(int how) noexcept {
  const std::uint64_t both = mask_bit(SIGBUS) | mask_bit(SIGSEGV);
  ::syscall(SYS_rt_sigprocmask, how, &both, nullptr, sizeof both);
  forget_signal_mask();
}

bool is_mask_open() {
  sigset_t mask;
  sigemptyset(&mask);
  const int error = errno;
  const bool known = ::pthread_sigmask(SIG_SETMASK, nullptr, &mask) == 0;
  errno = error;
  return known && sigismember(&mask, SIGBUS) == 0 && sigismember(&mask, SIGSEGV) == 0;
}

}  // namespace

bool catch_faults(Sigaction next) noexcept {
  if (next_sigaction.load(std::memory_order_acquire) == nullptr) {  // CAUGHT acquire: the actions
    if (!can_guard_copies()) return false;
    const Changing here;
    if ((ignored.load(std::memory_order_relaxed) & kReleased) != 0) return false;
    if (next_sigaction.load(std::memory_order_relaxed) == nullptr) {
      kernels_sigaction.store(next, std::memory_order_relaxed);
      if (!catch_signal(SIGBUS, next) || !catch_signal(SIGSEGV, next)) return false;
      next_sigaction.store(next, std::memory_order_release);  // CAUGHT release: the actions
    }
  }
  return ignored.load(std::memory_order_relaxed) == 0;
}

void release_faults() noexcept {
  const Changing here;
  ignored.fetch_or(kReleased, std::memory_order_relaxed);
  const Sigaction next = next_sigaction.load(std::memory_order_relaxed);
  if (next == nullptr || !wait_for_copies()) return;
  for (const int signal : {SIGBUS, SIGSEGV}) {
    const struct sigaction action = action_of(signal);
    next(signal, &action, nullptr);
  }
  next_sigaction.store(nullptr, std::memory_order_relaxed);
}

namespace {

/// Sets the action and returns the previous one. Requires Changing.
bool exchange_action(int signal, const struct sigaction* wanted, struct sigaction& before, Sigaction next) {
  before = action_of(signal);
  if (wanted == nullptr) return true;
  // Set before the action changes, so that no new copy meets an uncaught signal.
  if (wanted->sa_handler == SIG_IGN) set_ignored(signal, true);
  const struct sigaction caught = action_for_kernel(*wanted, wanted->sa_handler == SIG_IGN && wait_for_copies());
  set_action(signal, *wanted);
  if (next(signal, &caught, nullptr) != 0) {
    set_action(signal, before);
    return false;
  }
  set_ignored(signal, wanted->sa_handler == SIG_IGN);
  return true;
}

}  // namespace

int program_sigaction(int signal, const struct sigaction* wanted, struct sigaction* before, Sigaction next) noexcept {
  // The program's pointers may be invalid, and its handler may re-enter here: use neither while the actions are locked.
  struct sigaction now{};
  if (wanted != nullptr) now = *wanted;
  struct sigaction old{};
  {
    const Changing here;
    const struct sigaction* const given = wanted == nullptr ? nullptr : &now;
    if (!catches_faults()) {
      if (next(signal, given, &old) != 0) return -1;
    } else if (!exchange_action(signal, given, old, next)) {
      return -1;
    }
  }
  if (before != nullptr) *before = old;
  return 0;
}

bool takes_faults() noexcept {
  if (ignored.load(std::memory_order_relaxed) != 0) return false;
  if (mask_of_thread == Mask::open) [[likely]]
    return true;
  if (mask_of_thread == Mask::blocked && ++reads_blocked < kReadsBlocked) return false;
  const bool open = is_mask_open();
  if (mask_changes != 0 || switches_contexts) return open;
  mask_of_thread = open ? Mask::open : Mask::blocked;
  reads_blocked = 0;
  return open;
}

void forget_signal_mask() noexcept { mask_of_thread = Mask::unknown; }

MaskChanges::MaskChanges() noexcept {
  mask_changes++;
  forget_signal_mask();
}

MaskChanges::~MaskChanges() {
  if (mask_changes != 0) mask_changes--;
  forget_signal_mask();
}

void forget_mask_changes() noexcept { mask_changes = 0; }

void always_ask_for_mask() noexcept {
  switches_contexts = true;
  forget_signal_mask();
}

FaultsUnblocked::FaultsUnblocked() noexcept {
  for (Sent& one : sent_) one.is_set = false;
  unblocked = this;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // UNBLOCKED barrier: no handler runs here before
  change_mask(SIG_UNBLOCK);
}

FaultsUnblocked::~FaultsUnblocked() {
  change_mask(SIG_BLOCK);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // UNBLOCKED barrier: no handler runs here afterwards
  unblocked = nullptr;
  for (const int signal : {SIGBUS, SIGSEGV}) {
    Sent& sent = sent_[index_of(signal)];
    if (sent.is_set) ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::syscall(SYS_gettid), signal, &sent.info);
  }
}

void FaultsUnblocked::keep(int signal, const siginfo_t& info) noexcept {
  sent_[index_of(signal)] = {.is_set = true, .info = info};
}

std::uint64_t FaultsUnblocked::kept() const noexcept {
  std::uint64_t all = 0;
  for (const int signal : {SIGBUS, SIGSEGV}) {
    if (sent_[index_of(signal)].is_set) all |= mask_bit(signal);
  }
  return all;
}

std::uint64_t kept_faults() noexcept { return unblocked == nullptr ? 0 : unblocked->kept(); }

bool catches_faults() noexcept { return next_sigaction.load(std::memory_order_relaxed) != nullptr; }

bool are_faults_still_caught() noexcept {
  const int error = errno;
  const Sigaction next = next_sigaction.load(std::memory_order_acquire);  // CAUGHT acquire: the actions
  bool caught = next != nullptr;
  for (const int signal : {SIGBUS, SIGSEGV}) {
    struct sigaction now{};
    caught =
        caught && next(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault;
  }
  errno = error;
  return caught;
}

void repair_faults_after_fork() noexcept {
  changing.store(false, std::memory_order_relaxed);
  forget_copies_after_fork();
}

}  // namespace wherry::file::mapped
