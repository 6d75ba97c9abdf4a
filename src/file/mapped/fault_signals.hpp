// SPDX-License-Identifier: Apache-2.0
//
// SIGBUS and SIGSEGV of guarded copies, beside the handlers that the program has for these signals.
#pragma once

#include <signal.h>

namespace wherry::file::mapped {

/// sigaction(2) of the C library: the preloaded library stands in front of the symbol.
using Sigaction = int (*)(int, const struct sigaction*, struct sigaction*);

/// Takes both signals from now on, and hands on those that no guarded copy raised. Returns whether guarded copies can
/// be made: not if a signal is ignored. Any number of times, from any thread.
bool catch_faults(Sigaction next) noexcept;

/// Whether the signal is one of the two.
constexpr bool is_fault_signal(int signal) { return signal == SIGBUS || signal == SIGSEGV; }

/// sigaction(2) of one of the two signals, as the program means it. Its action is what it reads back. Before the kernel
/// ignores a signal this waits for guarded copies that are under way.
int program_sigaction(int signal, const struct sigaction* wanted, struct sigaction* before, Sigaction next) noexcept;

/// Whether a guarded copy may be made in this thread, by the owner of a CopyUnderWay: both signals are caught, and
/// unblocked here. The kernel is asked for a thread's mask at the first copy, after a call that may have changed it,
/// and now and then while one of the two is blocked.
bool takes_faults() noexcept;
/// The mask of this thread was changed.
void forget_signal_mask() noexcept;

/// While it lives the mask of this thread may change at any moment, also for the handlers that run meanwhile: each copy
/// asks for it.
class MaskChanges {
 public:
  MaskChanges() noexcept;
  ~MaskChanges();
  MaskChanges(const MaskChanges&) = delete;
  MaskChanges& operator=(const MaskChanges&) = delete;
};
/// A jump leaves them behind.
void forget_mask_changes() noexcept;
/// This thread switches contexts, and one that ends changes the mask without a call: each copy asks for it from now on.
void always_ask_for_mask() noexcept;

/// Whether the signals are caught.
bool catches_faults() noexcept;
/// The same where no hook tells of the program's own actions: asks the kernel. Keeps errno.
bool are_faults_still_caught() noexcept;

/// No guarded copy is made from now on. Gives the kernel the program's actions, when those under way have ended; keeps
/// the signals if one has not within a second.
void release_faults() noexcept;

/// In a forked child: another thread of the parent's may have been changing an action.
void repair_faults_after_fork() noexcept;

}  // namespace wherry::file::mapped
