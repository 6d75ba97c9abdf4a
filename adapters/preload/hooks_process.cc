// SPDX-License-Identifier: Apache-2.0
//
// Hooks of calls that make processes and replace their programs.
#include <fcntl.h>
#include <limits.h>
#include <pty.h>
#include <sched.h>
#include <spawn.h>
#include <unistd.h>
#include <wordexp.h>

#include <alloca.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/preload_support.hpp"
#include "descriptors.hpp"
#include "direct_files.hpp"
#include "environment.hpp"
#include "hook.hpp"
#include "hooks_open.hpp"
#include "next.hpp"
#include "processes.hpp"
#include "program_memory.hpp"
#include "report.hpp"
#include "sharing.hpp"
#include "shortened.hpp"
#include "stepping_aside.hpp"
#include "vfork.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): what the C library's pthread_atfork calls
extern "C" int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* library) noexcept;

namespace wherry::preload {

void prepare_clone(std::uint64_t flags) noexcept {
  const bool one_memory = (flags & CLONE_VM) != 0;
  if (one_memory && (flags & CLONE_SIGHAND) == 0) step_aside();
  if (one_memory != ((flags & CLONE_FILES) != 0)) share_all_for_good();
}

void repair_after_fork() noexcept {
  const int error = errno;
  repair_sharing_after_fork();
  repair_descriptors_after_fork();
  if (reports()) begin_report_anew();
  errno = error;
}

}  // namespace wherry::preload

using namespace wherry::preload;
using wherry::PreloadSupport;

namespace {

bool is_string(const char* string) { return ProgramMemory().length_of(string) != ProgramMemory::kUnreadable; }

/// Returns whether the loader of a program will load this library. A program whose name cannot be read is refused by
/// the kernel.
PreloadSupport support_of(int at, const char* path, int flags) {
  if (is_filtered()) return PreloadSupport::incompatible;
  return is_string(path) ? wherry::preload_support_of(at, path, flags) : PreloadSupport::supported;
}

/// The same for a name that is searched in PATH.
PreloadSupport support_of_found(const char* name) {
  std::array<char, PATH_MAX> room{};
  if (is_filtered()) return PreloadSupport::incompatible;
  if (!is_string(name)) return PreloadSupport::supported;
  const char* const path = wherry::find_in_path(name, room.data());
  return path == nullptr ? PreloadSupport::ignored : wherry::preload_support_of(AT_FDCWD, path, 0);
}

/// Completes `given`, on the stack of the caller.
#define WHERRY_ENVIRONMENT(given, support)                                                              \
  ({                                                                                                    \
    const std::size_t variables = count_variables(given);                                               \
    char* const* completed = given;                                                                     \
    if (variables != ProgramMemory::kUnreadable) {                                                      \
      const std::size_t words = variables + kMostVariables + 1;                                         \
      const std::size_t bytes = text_for(given);                                                        \
      completed = complete(given, support, {static_cast<char**>(alloca(words * sizeof(char*))), words}, \
                           {static_cast<char*>(alloca(bytes)), bytes});                                 \
    }                                                                                                   \
    completed;                                                                                          \
  })

struct Start {
  int (*function)(void*);
  void* argument;
};

int start_in_child(void* start) {
  const Start copy = *static_cast<Start*>(start);
  repair_after_fork();
  all_shared_no_more();
  return copy.function(copy.argument);
}

// The child was repaired before the program's own handlers ran.
constinit bool is_repaired = false;

void prepare_handlers() { is_repaired = false; }

/// Runs once, although it may be registered more than once: mappings of a handler in between must not be forgotten.
void repair_before_handlers() {
  if (!std::exchange(is_repaired, true)) repair_after_fork();
}

/// To be called after a fork by the C library, which runs handlers. Their mappings must not be forgotten.
void repair_after_handlers() {
  if (!std::exchange(is_repaired, false)) repair_after_fork();
  close_direct_after_fork(true);
}

// Whether any child may empty a file between its fork and its exec, where no hook is called.
constinit std::atomic<bool> any_spawn_empties{false};

int spawned(const posix_spawn_file_actions_t* actions, int error) {
  if (actions != nullptr && any_spawn_empties.load(std::memory_order_relaxed)) any_shortened();
  return error;
}

std::size_t count_words(va_list list) {
  std::size_t count = 0;
  while (va_arg(list, char*) != nullptr) count++;
  return count;
}

/// Collects the arguments of the execl family, with the terminating null pointer. `list` then points behind it.
char** take_words(char** words, const char* first, va_list& list) {
  words[0] = const_cast<char*>(first);
  for (std::size_t i = 1; (words[i] = va_arg(list, char*)) != nullptr; i++) {
  }
  return words;
}

/// The same, on the stack of the caller.
#define WHERRY_WORDS(first, list)                                                        \
  ({                                                                                     \
    va_list counted;                                                                     \
    va_copy(counted, list);                                                              \
    const std::size_t counted_words = count_words(counted) + 2;                          \
    va_end(counted);                                                                     \
    take_words(static_cast<char**>(alloca(counted_words * sizeof(char*))), first, list); \
  })

}  // namespace

WHERRY_HOOK pid_t fork() noexcept {
  if (in_vfork_child()) return WHERRY_NEXT(fork);
  find_functions_of_children();
  const AllShared shared;
  const pid_t child = WHERRY_NEXT(fork);
  if (child == 0) repair_after_handlers();
  return child;
}

WHERRY_HOOK pid_t _Fork() noexcept {
  if (in_vfork_child()) return WHERRY_NEXT(_Fork);
  find_functions_of_children();
  const AllShared shared;
  const pid_t child = WHERRY_NEXT(_Fork);
  if (child == 0) repair_after_fork();
  return child;
}

// A fork handler that closes files in the child must not wait for a thread that only the parent has. Handlers run in
// the order in which they were registered: until one of this library is known to be registered, each thread registers
// its own.
WHERRY_HOOK int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* library) noexcept {
  static constinit std::atomic<bool> registered{false};
  if (!registered.load(std::memory_order_acquire) &&  // ATFORK acquire: the handler
      WHERRY_NEXT(__register_atfork, &prepare_handlers, nullptr, &repair_before_handlers, nullptr) == 0) {
    registered.store(true, std::memory_order_release);  // ATFORK release: the handler
  }
  return WHERRY_NEXT(__register_atfork, prepare, parent, child, library);
}

WHERRY_HOOK int daemon(int stay, int keep) noexcept {
  const AllShared shared;
  const int result = WHERRY_NEXT(daemon, stay, keep);
  if (result == 0) {
    repair_after_handlers();
    for (int fd = STDIN_FILENO; keep == 0 && fd <= STDERR_FILENO; fd++) doubled(fd);
  }
  return result;
}

WHERRY_HOOK int forkpty(int* master, char* name, const termios* terminal, const winsize* size) noexcept {
  const AllShared shared;
  const int child = WHERRY_NEXT(forkpty, master, name, terminal, size);
  if (child == 0) {
    repair_after_handlers();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) doubled(fd);
  }
  return child;
}

// A child with its own memory is like fork's.
WHERRY_HOOK int clone(int (*function)(void*), void* stack, int flags, void* argument, ...) noexcept {
  va_list arguments;
  va_start(arguments, argument);
  void* const parent_tid = va_arg(arguments, void*);
  void* const tls = va_arg(arguments, void*);
  void* const child_tid = va_arg(arguments, void*);
  va_end(arguments);
  prepare_clone(static_cast<std::uint64_t>(flags));
  if ((flags & CLONE_VM) != 0) {
    return WHERRY_NEXT(clone, function, stack, flags, argument, parent_tid, tls, child_tid);
  }
  const AllShared shared;
  Start start{.function = function, .argument = argument};
  return WHERRY_NEXT(clone, &start_in_child, stack, flags, &start, parent_tid, tls, child_tid);
}

WHERRY_HOOK int unshare(int flags) noexcept {
  if ((flags & CLONE_FILES) != 0) share_all_for_good();
  return WHERRY_NEXT(unshare, flags);
}

WHERRY_HOOK int execve(const char* path, char* const arguments[], char* const environment[]) noexcept {
  const AllShared shared;
  return WHERRY_NEXT(execve, path, arguments, WHERRY_ENVIRONMENT(environment, support_of(AT_FDCWD, path, 0)));
}

WHERRY_HOOK int execveat(int at, const char* path, char* const arguments[], char* const environment[],
                         int flags) noexcept {
  const AllShared shared;
  return WHERRY_NEXT(execveat, at, path, arguments, WHERRY_ENVIRONMENT(environment, support_of(at, path, flags)),
                     flags);
}

WHERRY_HOOK int fexecve(int fd, char* const arguments[], char* const environment[]) noexcept {
  const AllShared shared;
  return WHERRY_NEXT(fexecve, fd, arguments,
                     WHERRY_ENVIRONMENT(environment, is_filtered() ? PreloadSupport::incompatible
                                                                   : wherry::preload_support_of(fd, nullptr, 0)));
}

WHERRY_HOOK int execvpe(const char* name, char* const arguments[], char* const environment[]) noexcept {
  const AllShared shared;
  return WHERRY_NEXT(execvpe, name, arguments, WHERRY_ENVIRONMENT(environment, support_of_found(name)));
}

WHERRY_HOOK int execv(const char* path, char* const arguments[]) noexcept { return execve(path, arguments, environ); }

WHERRY_HOOK int execvp(const char* name, char* const arguments[]) noexcept { return execvpe(name, arguments, environ); }

WHERRY_HOOK int execl(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  char** const words = WHERRY_WORDS(first, list);
  va_end(list);
  return execve(path, words, environ);
}

WHERRY_HOOK int execlp(const char* name, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  char** const words = WHERRY_WORDS(first, list);
  va_end(list);
  return execvpe(name, words, environ);
}

WHERRY_HOOK int execle(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  char** const words = WHERRY_WORDS(first, list);
  char* const* const environment = va_arg(list, char* const*);
  va_end(list);
  return execve(path, words, environment);
}

WHERRY_HOOK int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                            const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  const AllShared shared;
  return spawned(actions, WHERRY_NEXT(posix_spawn, child, path, actions, attributes, arguments,
                                      WHERRY_ENVIRONMENT(environment, support_of(AT_FDCWD, path, 0))));
}

WHERRY_HOOK int posix_spawnp(pid_t* child, const char* name, const posix_spawn_file_actions_t* actions,
                             const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  const AllShared shared;
  return spawned(actions, WHERRY_NEXT(posix_spawnp, child, name, actions, attributes, arguments,
                                      WHERRY_ENVIRONMENT(environment, support_of_found(name))));
}

WHERRY_HOOK int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t* actions, int fd, const char* path,
                                                 int flags, mode_t mode) noexcept {
  if ((flags & O_TRUNC) != 0) any_spawn_empties.store(true, std::memory_order_relaxed);
  return WHERRY_NEXT(posix_spawn_file_actions_addopen, actions, fd, path, flags, mode);
}

WHERRY_HOOK int wordexp(const char* text, wordexp_t* words, int flags) {
  const AllShared shared;
  return WHERRY_NEXT(wordexp, text, words, flags);
}

// The shell that these start loads this library by its environment, and checks the programs that it executes.

WHERRY_HOOK int system(const char* command) {
  const AllShared shared;
  return WHERRY_NEXT(system, command);
}

WHERRY_HOOK FILE* popen(const char* command, const char* mode) {
  const AllShared shared;
  FILE* const file = WHERRY_NEXT(popen, command, mode);
  if (file != nullptr) forget(fileno(file));
  return file;
}

WHERRY_OTHER_NAME(__fork, fork);
WHERRY_OTHER_NAME(__clone, clone);
WHERRY_OTHER_NAME(_IO_popen, popen);
