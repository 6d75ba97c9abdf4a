// SPDX-License-Identifier: Apache-2.0
//
// Hooks of calls behind which the C library itself reads, writes and closes descriptors.
#include <aio.h>
#include <dirent.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>

#include "descriptors.hpp"
#include "hook.hpp"
#include "hooks_open.hpp"
#include "marks.hpp"
#include "next.hpp"
#include "sharing.hpp"
#include "vfork.hpp"

extern "C" {
// libaio's and liburing's, whose headers are not needed.
int io_setup(int count, void* context);
int io_queue_init(int count, void* context);
int io_uring_setup(unsigned entries, void* parameters);
int io_uring_queue_init(unsigned entries, void* ring, unsigned flags);
int io_uring_queue_init_params(unsigned entries, void* ring, void* parameters);
int io_uring_queue_init_mem(unsigned entries, void* ring, void* parameters, void* memory, std::size_t size);
}

using namespace wherry::preload;

namespace {

bool writes(const char* mode) { return mode != nullptr && std::strpbrk(mode, "wa+") != nullptr; }

FILE* taken(FILE* file, const char* mode) {
  if (file == nullptr) return file;
  const int fd = fileno(file);
  if (fd >= 0) doubled(fd);
  if (fd >= 0 && writes(mode)) stdio_writes(fd);
  return file;
}

/// Before the C library closes the number of a FILE.
int leave(FILE* file) {
  const int fd = file == nullptr ? -1 : fileno(file);
  if (fd < 0 || in_vfork_child()) return fd;
  share_offset(fd);
  forget(fd);
  stdio_writes_no_more(fd);
  return fd;
}

}  // namespace

WHERRY_HOOK FILE* fopen(const char* path, const char* mode) { return taken(WHERRY_NEXT(fopen, path, mode), mode); }

WHERRY_HOOK FILE* fopen64(const char* path, const char* mode) { return taken(WHERRY_NEXT(fopen64, path, mode), mode); }

WHERRY_HOOK FILE* fdopen(int fd, const char* mode) noexcept {
  share_offset(fd);
  FILE* const file = WHERRY_NEXT(fdopen, fd, mode);
  if (file != nullptr && writes(mode)) stdio_writes(fd);
  return file;
}

WHERRY_HOOK FILE* freopen(const char* path, const char* mode, FILE* file) {
  const MarkOfClosed mark(leave(file));
  return taken(WHERRY_NEXT(freopen, path, mode, file), mode);
}

WHERRY_HOOK FILE* freopen64(const char* path, const char* mode, FILE* file) {
  const MarkOfClosed mark(leave(file));
  return taken(WHERRY_NEXT(freopen64, path, mode, file), mode);
}

WHERRY_HOOK int fclose(FILE* file) {
  const MarkOfClosed mark(leave(file));
  return WHERRY_NEXT(fclose, file);
}

WHERRY_HOOK int fcloseall() {
  const AllShared shared;
  const int result = WHERRY_NEXT(fcloseall);
  forget_range(0, UINT_MAX);
  return result;
}

WHERRY_HOOK DIR* fdopendir(int fd) {
  share_offset(fd);
  return WHERRY_NEXT(fdopendir, fd);
}

WHERRY_HOOK int closedir(DIR* directory) {
  if (directory != nullptr && !in_vfork_child()) forget(dirfd(directory));
  return WHERRY_NEXT(closedir, directory);
}

// Calls that go on when they have returned, or that go round the C library.

WHERRY_HOOK int aio_write(aiocb* request) noexcept {
  writes_unseen();
  return WHERRY_NEXT(aio_write, request);
}

WHERRY_HOOK int aio_write64(aiocb64* request) noexcept {
  writes_unseen();
  return WHERRY_NEXT(aio_write64, request);
}

WHERRY_HOOK int lio_listio(int mode, aiocb* const* list, int count, sigevent* event) noexcept {
  writes_unseen();
  return WHERRY_NEXT(lio_listio, mode, list, count, event);
}

WHERRY_HOOK int lio_listio64(int mode, aiocb64* const* list, int count, sigevent* event) noexcept {
  writes_unseen();
  return WHERRY_NEXT(lio_listio64, mode, list, count, event);
}

#define WHERRY_NEXT_FOR_CALLER(name, ...) \
  (reinterpret_cast<decltype(&::name)>(next_function_for(__builtin_return_address(0), #name))(__VA_ARGS__))

WHERRY_HOOK int io_setup(int count, void* context) {
  writes_unseen();
  return WHERRY_NEXT_FOR_CALLER(io_setup, count, context);
}

WHERRY_HOOK int io_queue_init(int count, void* context) {
  writes_unseen();
  return WHERRY_NEXT_FOR_CALLER(io_queue_init, count, context);
}

// A ring can close descriptors, too, and use their offsets.
static void use_ring() {
  writes_unseen();
  share_all_for_good();
}

WHERRY_HOOK int io_uring_setup(unsigned entries, void* parameters) {
  use_ring();
  return WHERRY_NEXT_FOR_CALLER(io_uring_setup, entries, parameters);
}

WHERRY_HOOK int io_uring_queue_init(unsigned entries, void* ring, unsigned flags) {
  use_ring();
  return WHERRY_NEXT_FOR_CALLER(io_uring_queue_init, entries, ring, flags);
}

WHERRY_HOOK int io_uring_queue_init_params(unsigned entries, void* ring, void* parameters) {
  use_ring();
  return WHERRY_NEXT_FOR_CALLER(io_uring_queue_init_params, entries, ring, parameters);
}

WHERRY_HOOK int io_uring_queue_init_mem(unsigned entries, void* ring, void* parameters, void* memory,
                                        std::size_t size) {
  use_ring();
  return WHERRY_NEXT_FOR_CALLER(io_uring_queue_init_mem, entries, ring, parameters, memory, size);
}
