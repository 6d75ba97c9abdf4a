// SPDX-License-Identifier: Apache-2.0
//
// files_native_offsets CASE FILE: reads FILE often enough that its offset is no longer the kernel's, and does what
// depends on the offset. Prints what it finds: the same natively and by wherry run --files. An ordinary program.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

enum { kRecord = 16, kReads = 3001 };

static char record[kRecord];
static const char* file;

static int open_file(void) {
  const int fd = open(file, O_RDONLY);
  if (fd < 0) {
    perror(file);
    exit(2);
  }
  return fd;
}

/// A descriptor after `kReads` reads.
static int read_often(void) {
  const int fd = open_file();
  for (int i = 0; i < kReads; i++) {
    if (read(fd, record, kRecord) != kRecord) perror("read");
  }
  return fd;
}

static void say(const char* what, long result) {
  printf("%s: %ld%s%s\n", what, result, result < 0 ? " " : "", result < 0 ? strerror(errno) : "");
  fflush(stdout);
}

static long offset(int fd) { return lseek(fd, 0, SEEK_CUR); }

static void far_offset(void) {
  const int fd = open_file();
  say("lseek", lseek(fd, 1L << 40, SEEK_SET));
  long bytes = 0;
  for (int i = 0; i < kReads; i++) bytes += read(fd, record, kRecord);
  say("bytes", bytes);
  say("offset", offset(fd));
}

static void endless_offset(void) {
  const int fd = read_often();
  say("beyond the largest offset", lseek(fd, LONG_MAX, SEEK_CUR));
  say("offset", offset(fd));
}

static void close_range_that_fails(void) {
  const int fd = read_often();
  say("close_range", close_range(3, ~0U, 1 << 6));
  say("offset", offset(fd));
}

static void standard_input(void) {
  close(STDIN_FILENO);
  const int fd = read_often();
  say("number", fd);
  say("lseek", lseek(fd, 2, SEEK_SET));
  say("first of stdio", getchar());
}

static void words_of_a_shell(void) {
  const int fd = read_often();
  char text[100];
  snprintf(text, sizeof(text), "$(head -c 1 <&%d | od -An -tu1)", fd);
  wordexp_t words;
  if (wordexp(text, &words, 0) == 0) printf("word: %s\n", words.we_wordv[0]);
}

static void descriptor_of_a_process(void) {
  const int fd = read_often();
  const int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
  const int same = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
  say("offset", same < 0 ? kReads * kRecord : offset(same));
}

static char stack[1 << 16];

static int reopen(void* fd) {
  close(*(int*)fd);
  return open("/dev/null", O_RDONLY) == *(int*)fd ? 0 : 9;
}

/// A child with the same descriptors, and a memory of its own.
static void child_with_the_same_descriptors(void) {
  int fd = read_often();
  pread(fd, record, kRecord, 0);
  const int child = clone(reopen, stack + sizeof(stack), CLONE_FILES | SIGCHLD, &fd);
  int status = 0;
  waitpid(child, &status, 0);
  say("child", status);
  say("pread", pread(fd, record, kRecord, 0));
  fd = read_often();
  const long other = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
  if (other == 0) _exit(reopen(&fd));
  waitpid((pid_t)other, &status, 0);
  say("child", status);
  say("pread", pread(fd, record, kRecord, 0));
}

// Other names that the C library has for its functions.
extern ssize_t __read(int fd, void* buffer, size_t bytes);
extern ssize_t __pread64(int fd, void* buffer, size_t bytes, off_t at);
extern off_t __lseek(int fd, off_t to, int whence);
extern int __open(const char* path, int flags, ...);
extern int __close(int fd);
extern int __fcntl(int fd, int command, ...);
extern int __dup2(int from, int to);
extern pid_t __fork(void);
extern pid_t __vfork(void);
extern FILE* _IO_fdopen(int fd, const char* mode);

static long first_byte(ssize_t result) { return result < 1 ? -1 : (unsigned char)record[0]; }

static void other_names(void) {
  int fd = read_often();
  say("__read", first_byte(__read(fd, record, kRecord)));
  say("__lseek", __lseek(fd, 2, SEEK_CUR));
  say("read", first_byte(read(fd, record, kRecord)));
  say("__pread64", first_byte(__pread64(fd, record, kRecord, 7)));
  fd = read_often();
  say("__close", __close(fd));
  say("the number again", __open("/dev/zero", O_RDONLY) == fd);
  say("of the other file", first_byte(pread(fd, record, kRecord, 1)));
  fd = read_often();
  say("__dup2", __dup2(open("/dev/zero", O_RDONLY), fd) == fd);
  say("of the other file", first_byte(pread(fd, record, kRecord, 1)));
  fd = read_often();
  say("__fcntl", offset(__fcntl(fd, F_DUPFD, 0)));
  fd = read_often();
  pid_t child = __fork();
  if (child == 0) _exit(read(fd, record, kRecord) != kRecord);
  waitpid(child, NULL, 0);
  say("__fork", offset(fd));
  child = __vfork();
  if (child == 0) _exit(execlp("true", "true", (char*)NULL));
  waitpid(child, NULL, 0);
  say("__vfork", offset(fd));
  say("_IO_fdopen", getc(_IO_fdopen(read_often(), "r")));
}

int main(int words, char** word) {
  static const struct {
    const char* name;
    void (*body)(void);
  } cases[] = {{"far", far_offset},
               {"endless", endless_offset},
               {"close-range", close_range_that_fails},
               {"standard-input", standard_input},
               {"wordexp", words_of_a_shell},
               {"pidfd", descriptor_of_a_process},
               {"clone", child_with_the_same_descriptors},
               {"other-names", other_names}};
  for (size_t i = 0; words == 3 && i < sizeof(cases) / sizeof(cases[0]); i++) {
    if (strcmp(word[1], cases[i].name) == 0) {
      file = word[2];
      cases[i].body();
      return 0;
    }
  }
  fprintf(stderr, "usage: files_native_offsets CASE FILE\n");
  return 2;
}
