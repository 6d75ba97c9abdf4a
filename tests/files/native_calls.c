// SPDX-License-Identifier: Apache-2.0
//
// files_native_calls FOLDER: makes each call that the preload knows on each kind of descriptor, with good and bad
// arguments, and prints result, errno and the offset afterwards: the same natively and by wherry run --files. An
// ordinary program. Descriptors of the file are read often first, so that they are read in place.
#define _GNU_SOURCE
#include "native_calls.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

// auto wants to see more of the first file of a process.
enum { kBytes = 200001, kReadsFirst = 700, kReads = 200 };

static char folder[4000];

const char* in_folder(const char* name) {
  static char path[4100];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  return path;
}

void say(const char* what, const char* of, long result) {
  const int error = errno;
  printf("%s of %s: %ld%s%s\n", what, of, result, result < 0 ? " " : "", result < 0 ? strerror(error) : "");
}

/// 200,001 bytes.
static void make_file(const char* name) {
  static unsigned char bytes[kBytes];
  for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
  const int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, bytes, sizeof(bytes)) != kBytes) perror(name);
  close(fd);
}

/// Reads often enough that the file is read in place, and leaves the offset at 5000.
static int warm(int fd) {
  static int reads = kReadsFirst;
  char some[100];
  for (int i = 0; i < reads; i++) {
    if (lseek(fd, i % 20 * 5000, SEEK_SET) < 0 || read(fd, some, sizeof(some)) < 0) return fd;
    if (pread(fd, some, sizeof(some), i % 20 * 5000) < 0) return fd;
  }
  lseek(fd, 5000, SEEK_SET);
  reads = kReads;
  return fd;
}

static int opened(const char* name, int flags) { return open(in_folder(name), flags | O_CLOEXEC); }
static int read_only(void) { return warm(opened("file", O_RDONLY)); }
static int read_write(void) { return warm(opened("file", O_RDWR)); }
static int write_only(void) { return opened("file", O_WRONLY); }
static int append(void) { return warm(opened("file", O_RDWR | O_APPEND)); }
static int direct(void) { return opened("file", O_RDONLY | O_DIRECT); }
static int path_only(void) { return opened("file", O_PATH); }
static int link_only(void) { return opened("link", O_PATH | O_NOFOLLOW); }
static int empty(void) { return warm(opened("empty", O_RDONLY)); }
static int sparse(void) { return warm(opened("sparse", O_RDONLY)); }
static int directory(void) { return opened(".", O_RDONLY | O_DIRECTORY); }
static int null_device(void) { return open("/dev/null", O_RDWR | O_CLOEXEC); }
static int zero_device(void) { return open("/dev/zero", O_RDWR | O_CLOEXEC); }
static int proc_file(void) { return open("/proc/self/comm", O_RDONLY | O_CLOEXEC); }
static int not_one(void) { return -1; }
static int no_number(void) { return INT_MAX; }
static int far_number(void) { return fcntl(read_only(), F_DUPFD_CLOEXEC, 700); }
static int second_number(void) { return dup(read_only()); }
static int closed_number(void) {
  const int fd = read_only();
  close(fd);
  return fd;
}
static int pipe_end(int end) {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return -1;
  close(ends[1 - end]);
  return ends[end];
}
static int pipe_to_read(void) { return pipe_end(0); }
static int pipe_to_write(void) {
  int ends[2];
  return pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0 ? ends[1] : -1;
}
static int socket_end(void) {
  int ends[2];
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0 ? ends[0] : -1;
}
static int counter(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }
static int memory(void) { return memfd_create("memory", MFD_CLOEXEC); }
static int waiter(void) { return epoll_create1(EPOLL_CLOEXEC); }
static int watch(void) { return inotify_init1(IN_NONBLOCK | IN_CLOEXEC); }
static int unlinked(void) {
  make_file("gone");
  const int fd = warm(opened("gone", O_RDWR));
  unlink(in_folder("gone"));
  return fd;
}

static const struct Kind kinds[] = {
    {"a file to read", read_only},
    {"a file to read and write", read_write},
    {"a file to write", write_only},
    {"a file to append", append},
    {"a file to read directly", direct},
    {"a file by O_PATH", path_only},
    {"a link by O_PATH", link_only},
    {"an empty file", empty},
    {"a sparse file", sparse},
    {"an unlinked file", unlinked},
    {"a directory", directory},
    {"/dev/null", null_device},
    {"/dev/zero", zero_device},
    {"a file of /proc", proc_file},
    {"-1", not_one},
    {"the largest number", no_number},
    {"a far number", far_number},
    {"a second number", second_number},
    {"a closed number", closed_number},
    {"a pipe to read", pipe_to_read},
    {"a pipe to write", pipe_to_write},
    {"a socket", socket_end},
    {"an eventfd", counter},
    {"a memfd", memory},
    {"an epoll", waiter},
    {"an inotify", watch},
};

static void make_files(void) {
  make_file("file");
  const int empty_file = opened("empty", O_WRONLY | O_CREAT | O_TRUNC);
  const int sparse_file = open(in_folder("sparse"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (ftruncate(sparse_file, 300000) != 0 || pwrite(sparse_file, "data", 4, 100000) != 4) perror("sparse");
  unlink(in_folder("link"));
  if (symlink("file", in_folder("link")) != 0) perror("link");
  mkdir(in_folder("directory"), 0700);
  close(empty_file);
  close(sparse_file);
}

/// Each call has a new descriptor of each kind.
static void make_calls(const struct Kind* kind) {
  for (size_t i = 0; i < count_calls; i++) {
    const int fd = kind->open();
    errno = 0;
    const long result = calls[i].make(fd);
    say(calls[i].name, kind->name, result);
    if (result != kNoOffset) say("  the offset then", kind->name, lseek(fd, 0, SEEK_CUR));
    errno = 0;
    close_range(3, UINT_MAX, 0);
  }
}

int main(int words, char** word) {
  if (words != 2) {
    fprintf(stderr, "usage: files_native_calls FOLDER\n");
    return 2;
  }
  snprintf(folder, sizeof(folder), "%s", word[1]);
  setvbuf(stdout, NULL, _IOFBF, 1 << 20);
  signal(SIGPIPE, SIG_IGN);
  umask(077);
  close_range(3, UINT_MAX, 0);
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    make_files();
    make_calls(&kinds[i]);
  }
  make_files();
  make_calls_by_name();
  printf("done\n");
  return 0;
}
