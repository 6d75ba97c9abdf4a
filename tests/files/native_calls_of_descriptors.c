// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "native_calls.hpp"

enum { kSize = 200001, kMostParts = 1024 };

static char buffer[300000];
static struct iovec many_parts[kMostParts + 1];
// The compiler does not know their values.
static volatile int minus_one = -1;
static volatile size_t endless = SIZE_MAX;

/// The bytes have a share in the result.
static long sum(ssize_t bytes) {
  unsigned long hash = 0;
  for (ssize_t i = 0; i < bytes; i++) hash = hash * 31 + (unsigned char)buffer[i];
  return bytes < 0 ? bytes : bytes * 1000 + (long)(hash % 1000);
}

static const struct iovec* parts(size_t count, size_t length) {
  for (size_t i = 0; i < count; i++) many_parts[i] = (struct iovec){buffer + i * length, length};
  return many_parts;
}

static long read_some(int fd) { return sum(read(fd, buffer, 1000)); }
static long read_nothing(int fd) { return sum(read(fd, buffer, 0)); }
static long read_all(int fd) { return sum(read(fd, buffer, sizeof(buffer))); }
static long read_endless(int fd) { return read(fd, (void*)-1, endless); }
static long read_checked(int fd) {
  volatile size_t bytes = 700;
  char some[1000];
  const ssize_t got = read(fd, some, bytes);
  return got <= 0 ? got : got * 1000 + (unsigned char)some[got - 1];
}
static long read_by_number(int fd) { return sum(syscall(SYS_read, fd, buffer, 1000)); }
static long readv_two(int fd) { return sum(readv(fd, parts(2, 600), 2)); }
static long readv_none(int fd) { return readv(fd, parts(2, 600), 0); }
static long readv_of_nothing(int fd) { return readv(fd, parts(2, 0), 2); }
static long readv_minus_one(int fd) { return readv(fd, parts(2, 600), minus_one); }
static long readv_most(int fd) { return sum(readv(fd, parts(kMostParts, 100), kMostParts)); }
static long readv_too_many(int fd) { return readv(fd, parts(kMostParts + 1, 100), kMostParts + 1); }
static long readv_endless(int fd) {
  const struct iovec both[2] = {{buffer, endless / 2}, {buffer, endless / 2 - 10}};
  return readv(fd, both, 2) < 0 ? -1 : 0;
}
static long pread_some(int fd) { return sum(pread(fd, buffer, 1000, 3000)); }
static long pread_negative(int fd) { return pread(fd, buffer, 1000, -1); }
static long pread_last_byte(int fd) { return sum(pread(fd, buffer, 1000, kSize - 1)); }
static long pread_at_end(int fd) { return sum(pread(fd, buffer, 1000, kSize)); }
static long pread_far(int fd) { return pread(fd, buffer, 1000, LONG_MAX - 10); }
static long pread_farthest(int fd) { return pread(fd, buffer, 1000, LONG_MAX); }
static long pread_last_page(int fd) { return sum(pread(fd, buffer, 4000, kSize / 4096 * 4096 - 2000)); }
static long preadv_two(int fd) { return sum(preadv(fd, parts(2, 5000), 2, 3000)); }
static long preadv_negative(int fd) { return preadv(fd, parts(2, 5000), 2, -2); }
static long preadv_too_many(int fd) { return preadv(fd, parts(kMostParts + 1, 10), kMostParts + 1, 0); }
static long preadv_of_17(int fd) { return sum(preadv(fd, parts(17, 100), 17, 100)); }
static long preadv2_on(int fd) { return sum(preadv2(fd, parts(2, 500), 2, -1, 0)); }
static long preadv2_soon(int fd) { return sum(preadv2(fd, parts(2, 500), 2, 0, RWF_NOWAIT)); }
static long preadv2_bad(int fd) { return preadv2(fd, parts(2, 500), 2, 0, 1 << 30); }
static long write_some(int fd) { return write(fd, "12345", 5); }
static long write_nothing(int fd) { return write(fd, buffer, 0); }
static long pwrite_negative(int fd) { return pwrite(fd, "12345", 5, -1); }
static long pwrite_some(int fd) { return pwrite(fd, "12345", 5, 70000); }
static long writev_too_many(int fd) { return writev(fd, parts(kMostParts + 1, 10), kMostParts + 1); }
static long write_and_read(int fd) {
  const ssize_t written = pwrite(fd, "abcdef", 6, 5100);
  return written < 0 ? -1 : sum(pread(fd, buffer, 300, 5000));
}
static long seek(int fd, off_t offset, int whence) { return lseek(fd, offset, whence); }
static long seek_set(int fd) { return seek(fd, 12345, SEEK_SET); }
static long seek_negative(int fd) { return seek(fd, -1, SEEK_SET); }
static long seek_before(int fd) { return seek(fd, -5001, SEEK_CUR); }
static long seek_back(int fd) { return seek(fd, -1000, SEEK_CUR); }
static long seek_over(int fd) { return seek(fd, LONG_MAX, SEEK_CUR); }
static long seek_end(int fd) { return seek(fd, -10, SEEK_END); }
static long seek_before_end(int fd) { return seek(fd, -300001, SEEK_END); }
static long seek_beyond(int fd) { return seek(fd, 10000, SEEK_END); }
static long seek_data(int fd) { return seek(fd, 10, SEEK_DATA); }
static long seek_hole(int fd) { return seek(fd, 10, SEEK_HOLE); }
static long seek_data_at_end(int fd) { return seek(fd, kSize + 200000, SEEK_DATA); }
static long seek_hole_negative(int fd) { return seek(fd, -1, SEEK_HOLE); }
static long seek_unknown(int fd) { return seek(fd, 0, 5); }
static long seek_far(int fd) { return seek(fd, (off_t)1 << 41, SEEK_SET); }
static long seek_farthest(int fd) { return seek(fd, LONG_MAX, SEEK_SET); }
static long seek_and_read(int fd) { return seek(fd, kSize - 50, SEEK_SET) < 0 ? -1 : sum(read(fd, buffer, 100)); }
static long read_at_end(int fd) { return seek(fd, 0, SEEK_END) < 0 ? -1 : read(fd, buffer, 100); }
static long read_beyond(int fd) { return seek(fd, kSize + 200000, SEEK_SET) < 0 ? -1 : read(fd, buffer, 100); }
static long ftruncate_negative(int fd) { return ftruncate(fd, -1); }
static long ftruncate_shorter(int fd) {
  const int result = ftruncate(fd, kSize - 300);
  const int error = errno;
  const long got = sum(pread(fd, buffer, 1000, kSize - 1000));
  errno = error;
  return result < 0 ? -1 : got;
}
static long ftruncate_longer(int fd) {
  return ftruncate(fd, kSize) < 0 ? -1 : sum(pread(fd, buffer, 900, kSize - 900));
}
static long allocate_negative(int fd) { return fallocate(fd, 0, -1, 10); }
static long allocate_nothing(int fd) { return fallocate(fd, 0, 0, 0); }
static long allocate_unknown(int fd) { return fallocate(fd, 1 << 20, 0, 10); }
static long punch(int fd) {
  const int result = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 8192);
  return result < 0 ? -1 : sum(pread(fd, buffer, 12000, 6000));
}
static long collapse_badly(int fd) { return fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 10, 10); }
static long posix_allocate_negative(int fd) { return posix_fallocate(fd, -1, 10); }
static long duplicate(int fd) { return dup(fd); }
static long duplicate_same(int fd) { return dup2(fd, fd); }
static long duplicate_same_3(int fd) { return dup3(fd, fd, O_CLOEXEC); }
static long duplicate_to(int fd) { return dup2(fd, 300); }
static long duplicate_negative(int fd) { return dup2(fd, -1); }
static long duplicate_far(int fd) { return dup2(fd, INT_MAX); }
static long duplicate_badly(int fd) { return dup3(fd, 301, 1); }
static long duplicate_above(int fd) { return fcntl(fd, F_DUPFD, 400); }
static long duplicate_above_all(int fd) { return fcntl(fd, F_DUPFD, INT_MAX); }
static long duplicate_at_limit(int fd) {
  struct rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const struct rlimit none = {3, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const int result = dup(fd);
  const int error = errno;
  setrlimit(RLIMIT_NOFILE, &before);
  errno = error;
  return result;
}
static long read_of_duplicate(int fd) {
  const int second = dup(fd);
  return second < 0 ? -1 : sum(read(second, buffer, 100)) + sum(read(fd, buffer, 100));
}
static long status_flags(int fd) { return fcntl(fd, F_GETFL); }
static long descriptor_flags(int fd) { return fcntl(fd, F_GETFD); }
static long set_append(int fd) { return fcntl(fd, F_SETFL, O_APPEND); }
static long set_direct(int fd) { return fcntl(fd, F_SETFL, O_DIRECT) < 0 ? -1 : read(fd, buffer + 1, 99); }
static long unknown_control(int fd) { return fcntl(fd, 9999, 0); }
static long lock_here(int fd) {
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_CUR, .l_start = -6000, .l_len = 10};
  return fcntl(fd, F_SETLK, &lock);
}
static long lock_some(int fd) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = -5, .l_len = 10};
  return fcntl(fd, F_OFD_SETLK, &lock);
}
static long lock_with_lockf(int fd) { return lockf(fd, F_TEST, -6000); }
static long lock_whole(int fd) { return flock(fd, LOCK_SH | LOCK_NB); }
static long lock_unknown(int fd) { return flock(fd, 77); }
static long lease_to_read(int fd) { return fcntl(fd, F_SETLEASE, F_RDLCK); }
static long closed_twice(int fd) { return close(fd) < 0 ? -1 : close(fd); }
static long close_badly(int fd) { return close_range((unsigned)fd, 2, 0); }
static long close_unknown(int fd) { return close_range((unsigned)fd, (unsigned)fd, 1 << 9); }
static long left_to_read(int fd) {
  int bytes = -7;
  return ioctl(fd, FIONREAD, &bytes) < 0 ? -1 : bytes;
}
static long unknown_request(int fd) { return ioctl(fd, 0x12345678, buffer); }
static long block_size(int fd) {
  int bytes = 0;
  return ioctl(fd, FIGETBSZ, &bytes) < 0 ? -1 : bytes;
}
static int target(void) { return open(in_folder("target"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); }
static long send_all(int fd) { return sendfile(target(), fd, NULL, 1000); }
static long send_negative(int fd) {
  off_t from = -5;
  return sendfile(target(), fd, &from, 1000);
}
static long send_to(int fd) {
  off_t from = 10;
  return sendfile(fd, open(in_folder("empty"), O_RDONLY | O_CLOEXEC), &from, 10);
}
static long copy_from(int fd) { return copy_file_range(fd, NULL, target(), NULL, 1000, 0); }
static long copy_to_itself(int fd) {
  off64_t from = 0;
  off64_t to = 10;
  return copy_file_range(fd, &from, fd, &to, 1000, 0);
}
static long copy_flags(int fd) { return copy_file_range(fd, NULL, target(), NULL, 1000, 1); }
static long splice_from(int fd) {
  int ends[2];
  return pipe2(ends, O_CLOEXEC) < 0 ? -1 : splice(fd, NULL, ends[1], NULL, 1000, SPLICE_F_NONBLOCK);
}
static long splice_badly(int fd) { return splice(fd, NULL, fd, NULL, 1000, SPLICE_F_NONBLOCK); }
static long by_stdio(int fd) {
  FILE* const file = fdopen(fd, "r");
  return file == NULL ? -1 : (long)fread(buffer, 1, 100, file) * 1000 + (unsigned char)buffer[0];
}
static long by_bad_stdio(int fd) { return fdopen(fd, "?") == NULL ? -1 : 0; }
static long as_directory(int fd) { return fdopendir(fd) == NULL ? -1 : 0; }
static long map_it(int fd) {
  const unsigned char* const place = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
  struct stat status;
  return place == MAP_FAILED ? -1 : fstat(fd, &status) == 0 && status.st_size > 100 ? place[100] : 0;
}
static long size_of(int fd) {
  struct stat status;
  return fstat(fd, &status) < 0 ? -1 : (long)status.st_size;
}
static long open_beside(int fd) { return openat(fd, "file", O_RDONLY | O_CLOEXEC); }
static long open_as_path(int fd) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  const int again = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  return again < 0 ? -1 : seek(again, 0, SEEK_CUR);
}
static long offset_in_proc(int fd) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
  const long shared = dup(fd);  // the offset is the kernel's then
  FILE* const file = shared < 0 ? NULL : fopen(path, "re");
  long offset = -1;
  if (file != NULL && fscanf(file, "pos: %ld", &offset) != 1) offset = -2;
  return offset;
}
static long advise(int fd) { return posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); }
static long read_ahead(int fd) { return readahead(fd, 0, 10000); }
static long sync_it(int fd) { return fsync(fd); }
static long sync_badly(int fd) { return sync_file_range(fd, -1, 10, 0); }

#define CALL(function) {#function, function}

const struct Call calls[] = {
    CALL(read_some),
    CALL(read_nothing),
    CALL(read_all),
    CALL(read_endless),
    CALL(read_checked),
    CALL(read_by_number),
    CALL(readv_two),
    CALL(readv_none),
    CALL(readv_of_nothing),
    CALL(readv_minus_one),
    CALL(readv_most),
    CALL(readv_too_many),
    CALL(readv_endless),
    CALL(pread_some),
    CALL(pread_negative),
    CALL(pread_last_byte),
    CALL(pread_at_end),
    CALL(pread_far),
    CALL(pread_farthest),
    CALL(pread_last_page),
    CALL(preadv_two),
    CALL(preadv_negative),
    CALL(preadv_too_many),
    CALL(preadv_of_17),
    CALL(preadv2_on),
    CALL(preadv2_soon),
    CALL(preadv2_bad),
    CALL(write_some),
    CALL(write_nothing),
    CALL(pwrite_negative),
    CALL(pwrite_some),
    CALL(writev_too_many),
    CALL(write_and_read),
    CALL(seek_set),
    CALL(seek_negative),
    CALL(seek_before),
    CALL(seek_back),
    CALL(seek_over),
    CALL(seek_end),
    CALL(seek_before_end),
    CALL(seek_beyond),
    CALL(seek_data),
    CALL(seek_hole),
    CALL(seek_data_at_end),
    CALL(seek_hole_negative),
    CALL(seek_unknown),
    CALL(seek_far),
    CALL(seek_farthest),
    CALL(seek_and_read),
    CALL(read_at_end),
    CALL(read_beyond),
    CALL(ftruncate_negative),
    CALL(ftruncate_shorter),
    CALL(ftruncate_longer),
    CALL(allocate_negative),
    CALL(allocate_nothing),
    CALL(allocate_unknown),
    CALL(punch),
    CALL(collapse_badly),
    CALL(posix_allocate_negative),
    CALL(duplicate),
    CALL(duplicate_same),
    CALL(duplicate_same_3),
    CALL(duplicate_to),
    CALL(duplicate_negative),
    CALL(duplicate_far),
    CALL(duplicate_badly),
    CALL(duplicate_above),
    CALL(duplicate_above_all),
    CALL(duplicate_at_limit),
    CALL(read_of_duplicate),
    CALL(status_flags),
    CALL(descriptor_flags),
    CALL(set_append),
    CALL(set_direct),
    CALL(unknown_control),
    CALL(lock_here),
    CALL(lock_some),
    CALL(lock_with_lockf),
    CALL(lock_whole),
    CALL(lock_unknown),
    CALL(lease_to_read),
    CALL(closed_twice),
    CALL(close_badly),
    CALL(close_unknown),
    CALL(left_to_read),
    CALL(unknown_request),
    CALL(block_size),
    CALL(send_all),
    CALL(send_negative),
    CALL(send_to),
    CALL(copy_from),
    CALL(copy_to_itself),
    CALL(copy_flags),
    CALL(splice_from),
    CALL(splice_badly),
    CALL(by_stdio),
    CALL(by_bad_stdio),
    CALL(as_directory),
    CALL(map_it),
    CALL(size_of),
    CALL(open_beside),
    CALL(open_as_path),
    CALL(offset_in_proc),
    CALL(advise),
    CALL(read_ahead),
    CALL(sync_it),
    CALL(sync_badly),
};
const size_t count_calls = sizeof(calls) / sizeof(calls[0]);
