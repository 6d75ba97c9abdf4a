// SPDX-License-Identifier: Apache-2.0
//
// SIGBUS and SIGSEGV of guarded copies, together with the program's own handlers for these signals.
#pragma once

#include <signal.h>

#include <cstdint>

namespace wherry::file::mapped {

/// The C library's sigaction(2). The preloaded library defines the symbol itself.
using Sigaction = int (*)(int, const struct sigaction*, struct sigaction*);

/// Catches both signals from now on, and passes on those that no guarded copy raised. Returns whether guarded copies
/// are possible: not while the program ignores one of the signals. Idempotent; thread-safe.
bool catch_faults(Sigaction next) noexcept;

/// Whether `signal` is SIGBUS or SIGSEGV.
constexpr bool is_fault_signal(int signal) { return signal == SIGBUS || signal == SIGSEGV; }

/// The program's view of sigaction(2) for one of the two signals: it reads back its own action. Before the kernel
/// ignores a signal, this waits for guarded copies in progress.
int program_sigaction(int signal, const struct sigaction* wanted, struct sigaction* before, Sigaction next) noexcept;

/// Whether this thread may make a guarded copy: both signals are caught, and not blocked here. Requires a CopyUnderWay.
/// Asks the kernel for the thread's mask at the first copy, after a call that may have changed it, and every 64th time
/// while one of the signals is blocked.
bool takes_faults() noexcept;
/// Call after the mask of this thread has changed.
void forget_signal_mask() noexcept;

/// While it lives, the mask of this thread may change at any moment, also in handlers that run meanwhile. Each copy
/// then asks the kernel for it.
class MaskChanges {
 public:
  MaskChanges() noexcept;
  ~MaskChanges();
  MaskChanges(const MaskChanges&) = delete;
  MaskChanges& operator=(const MaskChanges&) = delete;
};
/// Call when a jump leaves the scopes of MaskChanges objects.
void forget_mask_changes() noexcept;
/// This thread switches contexts. The end of a context changes the mask without a call, so each copy asks for it from
/// now on.
void always_ask_for_mask() noexcept;

/// While it lives, this thread can make guarded copies although all its signals are to be blocked: the two signals are
/// not. One of them that a process sends meanwhile is sent again at the end, when both are blocked again. Must not be
/// nested.
class FaultsUnblocked {
 public:
  FaultsUnblocked() noexcept;
  FaultsUnblocked(const FaultsUnblocked&) = delete;
  FaultsUnblocked& operator=(const FaultsUnblocked&) = delete;
  ~FaultsUnblocked();
  /// For the signal handler.
  void keep(int signal, const siginfo_t& info) noexcept;
  [[nodiscard]] std::uint64_t kept() const noexcept;

 private:
  struct Sent {
    bool is_set;
    siginfo_t info;
  };
  Sent sent_[2];  // one for each signal: blocked signals do not queue either
};

/// The signals that FaultsUnblocked of this thread will send again, as a signal mask of the kernel.
std::uint64_t kept_faults() noexcept;

/// Whether both signals are caught.
bool catches_faults() noexcept;
/// As above, where no hook sees the program's own calls of sigaction: asks the kernel. Keeps errno.
bool are_faults_still_caught() noexcept;

/// Forbids guarded copies from now on. Waits for those in progress, then gives the kernel the program's actions. Keeps
/// the signals if a copy has not ended within 1 s.
void release_faults() noexcept;

/// Call in a forked child: another thread of the parent may have been changing an action.
void repair_faults_after_fork() noexcept;

}  // namespace wherry::file::mapped
