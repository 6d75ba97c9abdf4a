// SPDX-License-Identifier: Apache-2.0
//
// Hooks of calls in which the C library itself reads, writes and closes descriptors.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>

#include "base/loaded_libraries.hpp"
#include "descriptors.hpp"
#include "hook.hpp"
#include "hooks_open.hpp"
#include "next.hpp"
#include "sharing.hpp"
#include "shortened.hpp"
#include "vfork.hpp"

extern "C" {
// liburing's, whose header is not needed.
int io_uring_setup(unsigned entries, void* parameters);
int io_uring_queue_init(unsigned entries, void* ring, unsigned flags);
int io_uring_queue_init_params(unsigned entries, void* ring, void* parameters);
int io_uring_queue_init_mem(unsigned entries, void* ring, void* parameters, void* memory, std::size_t size);
}

using namespace wherry::preload;

namespace {

/// The flags of open that the mode of fopen stands for, as far as `opened` uses them.
int flags_of(const char* mode) {
  if (mode == nullptr) return O_PATH;
  const bool both = std::strchr(mode, '+') != nullptr;
  if (*mode == 'r') return both ? O_RDWR : O_RDONLY;
  return (both ? O_RDWR : O_WRONLY) | (*mode == 'w' ? O_TRUNC : 0);
}

/// libstdc++ opens the files of streams by fopen, but then reads and writes their descriptors, not the FILE.
bool is_stream_library(const void* caller) { return wherry::is_in_library(caller, "libstdc++.so"); }

FILE* taken(FILE* file, const char* mode) {
  if (file == nullptr) return file;
  const int fd = fileno(file);
  if (fd >= 0) doubled(fd);
  if (fd >= 0 && mode != nullptr && *mode == 'w') shortened(fd);
  return file;
}

/// Returns the descriptor of a FILE that the C library is about to close, with its offset shared.
int leave(FILE* file) {
  const int fd = file == nullptr ? -1 : fileno(file);
  if (fd >= 0 && !in_vfork_child()) share_offset(fd);
  return fd;
}

}  // namespace

WHERRY_HOOK FILE* fopen(const char* path, const char* mode) {
  FILE* const file = WHERRY_NEXT(fopen, path, mode);
  if (file == nullptr || !is_stream_library(__builtin_return_address(0))) return taken(file, mode);
  (void)opened(fileno(file), flags_of(mode));
  return file;
}

WHERRY_HOOK FILE* fdopen(int fd, const char* mode) noexcept {
  share_offset(fd);
  return WHERRY_NEXT(fdopen, fd, mode);
}

WHERRY_HOOK FILE* freopen(const char* path, const char* mode, FILE* file) {
  const Closing closing(leave(file));
  return taken(WHERRY_NEXT(freopen, path, mode, file), mode);
}

WHERRY_HOOK int fclose(FILE* file) {
  const Closing closing(leave(file));
  return WHERRY_NEXT(fclose, file);
}

WHERRY_HOOK int fcloseall() {
  const AllShared shared;
  forget_range(0, UINT_MAX);
  return WHERRY_NEXT(fcloseall);
}

WHERRY_HOOK DIR* fdopendir(int fd) {
  share_offset(fd);
  return WHERRY_NEXT(fdopendir, fd);
}

WHERRY_HOOK int closedir(DIR* directory) {
  const Closing closing(directory == nullptr ? -1 : dirfd(directory));
  return WHERRY_NEXT(closedir, directory);
}

// A ring can close descriptors and use their offsets without a call of these hooks.

WHERRY_HOOK int io_uring_setup(unsigned entries, void* parameters) {
  share_all_for_good();
  return WHERRY_NEXT_FOR_CALLER(io_uring_setup, entries, parameters);
}

WHERRY_HOOK int io_uring_queue_init(unsigned entries, void* ring, unsigned flags) {
  share_all_for_good();
  return WHERRY_NEXT_FOR_CALLER(io_uring_queue_init, entries, ring, flags);
}

WHERRY_HOOK int io_uring_queue_init_params(unsigned entries, void* ring, void* parameters) {
  share_all_for_good();
  return WHERRY_NEXT_FOR_CALLER(io_uring_queue_init_params, entries, ring, parameters);
}

WHERRY_HOOK int io_uring_queue_init_mem(unsigned entries, void* ring, void* parameters, void* memory,
                                        std::size_t size) {
  share_all_for_good();
  return WHERRY_NEXT_FOR_CALLER(io_uring_queue_init_mem, entries, ring, parameters, memory, size);
}

WHERRY_OTHER_NAME(_IO_fopen, fopen);
WHERRY_OTHER_NAME(_IO_fdopen, fdopen);
WHERRY_OTHER_NAME(_IO_fclose, fclose);
WHERRY_OTHER_NAME(fopen64, fopen);
WHERRY_OTHER_NAME(freopen64, freopen);
