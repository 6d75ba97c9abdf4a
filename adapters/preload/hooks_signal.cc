// SPDX-License-Identifier: Apache-2.0
//
// Hooks of calls that set signal handlers: this library catches SIGBUS and SIGSEGV of copies from mappings besides the
// program's own.
#include <signal.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "directories.hpp"
#include "file/mapped/fault_signals.hpp"
#include "hook.hpp"
#include "next.hpp"
#include "stepping_aside.hpp"
#include "vfork.hpp"

extern "C" sighandler_t bsd_signal(int signal, sighandler_t handler) noexcept;

using namespace wherry::preload;
namespace mapped = wherry::file::mapped;

namespace {

constexpr int kSignals = 65;
constexpr unsigned kBus = 1;
constexpr unsigned kSegv = 2;
// Which of the two are in the program's mask for a signal's action.
constinit std::array<std::atomic<std::uint8_t>, kSignals> left_out{};

unsigned take_out(sigset_t& mask) {
  unsigned out = 0;
  if (sigismember(&mask, SIGBUS) == 1) out |= kBus;
  if (sigismember(&mask, SIGSEGV) == 1) out |= kSegv;
  if ((out & kBus) != 0) sigdelset(&mask, SIGBUS);
  if ((out & kSegv) != 0) sigdelset(&mask, SIGSEGV);
  return out;
}

void put_back(sigset_t& mask, unsigned out) {
  if ((out & kBus) != 0) sigaddset(&mask, SIGBUS);
  if ((out & kSegv) != 0) sigaddset(&mask, SIGSEGV);
}

int next(int signal, const struct sigaction* wanted, struct sigaction* before) {
  return WHERRY_NEXT(sigaction, signal, wanted, before);
}

/// For signals other than the two: a handler's reads may be made in place, too.
int set_other(int signal, const struct sigaction* wanted, struct sigaction* before) {
  if (signal <= 0 || signal >= kSignals) return next(signal, wanted, before);
  auto& out = left_out[static_cast<unsigned>(signal)];
  const unsigned old = out.load(std::memory_order_relaxed);
  struct sigaction given{};
  unsigned now = 0;
  if (wanted != nullptr) {
    given = *wanted;
    now = take_out(given.sa_mask);
  }
  const int result = next(signal, wanted == nullptr ? nullptr : &given, before);
  if (result != 0) return result;
  if (wanted != nullptr) out.store(static_cast<std::uint8_t>(now), std::memory_order_relaxed);
  if (before != nullptr) put_back(before->sa_mask, old);
  return result;
}

int set_action(int signal, const struct sigaction* wanted, struct sigaction* before) {
  // The child of a vfork has its own actions, but its parent's memory.
  if (!any_directories() || in_vfork_child()) return next(signal, wanted, before);
  // Makes no call that a filter could forbid, such as locking the actions.
  if (is_filtered() && !mapped::catches_faults()) return next(signal, wanted, before);
  if (mapped::is_fault_signal(signal)) return mapped::program_sigaction(signal, wanted, before, next);
  return set_other(signal, wanted, before);
}

sighandler_t set_handler(int signal, sighandler_t handler, int flags) {
  struct sigaction wanted{};
  struct sigaction before{};
  wanted.sa_handler = handler;
  wanted.sa_flags = flags;
  return set_action(signal, &wanted, &before) == 0 ? before.sa_handler : SIG_ERR;
}

}  // namespace

WHERRY_HOOK int sigaction(int signal, const struct sigaction* wanted, struct sigaction* before) noexcept {
  return set_action(signal, wanted, before);
}

WHERRY_OTHER_NAME(__sigaction, sigaction);

// The C library's own would bypass this hook. For all other signals it is right as it is.

WHERRY_HOOK sighandler_t signal(int signal, sighandler_t handler) noexcept {
  if (!mapped::is_fault_signal(signal) || handler == SIG_ERR) return WHERRY_NEXT(signal, signal, handler);
  return set_handler(signal, handler, SA_RESTART);
}

WHERRY_HOOK sighandler_t bsd_signal(int number, sighandler_t handler) noexcept { return signal(number, handler); }

WHERRY_HOOK sighandler_t ssignal(int number, sighandler_t handler) noexcept { return signal(number, handler); }

WHERRY_HOOK sighandler_t __sysv_signal(int signal, sighandler_t handler) noexcept {
  if (!mapped::is_fault_signal(signal) || handler == SIG_ERR) return WHERRY_NEXT(__sysv_signal, signal, handler);
  return set_handler(signal, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER);
}

WHERRY_HOOK sighandler_t sysv_signal(int signal, sighandler_t handler) noexcept {
  return __sysv_signal(signal, handler);
}

// SIG_HOLD blocks the signal, every other action unblocks it.
WHERRY_HOOK sighandler_t sigset(int signal, sighandler_t handler) noexcept {
  if (!mapped::is_fault_signal(signal) || handler == SIG_ERR) {
    const mapped::MaskChanges changes;
    return reinterpret_cast<sighandler_t (*)(int, sighandler_t)>(next_function(Hook::k_sigset))(signal, handler);
  }
  struct sigaction now{};
  const bool holds = handler == SIG_HOLD;
  const sighandler_t before = !holds                                   ? set_handler(signal, handler, 0)
                              : set_action(signal, nullptr, &now) == 0 ? now.sa_handler
                                                                       : SIG_ERR;
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, signal);
  sigset_t mask_before;
  if (before == SIG_ERR || sigprocmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &mask, &mask_before) != 0) return SIG_ERR;
  return sigismember(&mask_before, signal) == 1 ? SIG_HOLD : before;
}

WHERRY_HOOK int sigignore(int signal) noexcept {
  if (mapped::is_fault_signal(signal)) return set_handler(signal, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
  return reinterpret_cast<int (*)(int)>(next_function(Hook::k_sigignore))(signal);
}
