// SPDX-License-Identifier: Apache-2.0
//
// files_native_results CASE FILE: reads FILE often enough to be read in place, and does what only the kernel's own
// calls are supposed to survive. Prints what it finds: the same natively and by wherry run --files. An ordinary
// program.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096, kReads = 20000 };

static char page[kPage];
// The compiler does not know their values.
static void* volatile null_pointer;
static volatile int minus_one = -1;

static int open_file(const char* path, int flags) {
  const int fd = open(path, flags | O_CLOEXEC);
  if (fd < 0) {
    perror(path);
    exit(2);
  }
  return fd;
}

static void read_often(int fd) {
  for (int i = 0; i < kReads; i++) {
    if (pread(fd, page, kPage, i % 16 * kPage) != kPage) perror("pread");
  }
}

static void say(const char* what, long result) {
  printf("%s: %ld%s%s\n", what, result, result < 0 ? " " : "", result < 0 ? strerror(errno) : "");
  fflush(stdout);
}

/// Runs in a child, whose exit status it prints.
static void say_in_child(const char* what, int (*body)(const char*), const char* path) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(body(path));
  int status = 0;
  waitpid(child, &status, 0);
  printf("%s: %s %d\n", what, WIFSIGNALED(status) ? "signal" : "exit",
         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static int posix_lock_is_held(const char* path) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  return fcntl(open_file(path, O_RDWR), F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static int open_file_lock_is_held(const char* path) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 1};
  return fcntl(open_file(path, O_RDWR), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static int flock_is_held(const char* path) { return flock(open_file(path, O_RDWR), LOCK_EX | LOCK_NB) != 0; }

static void locks(const char* path) {
  const int first = open_file(path, O_RDWR);
  const int second = open_file(path, O_RDWR);
  const int third = open_file(path, O_RDWR);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  say("posix", fcntl(first, F_SETLK, &lock));
  lock.l_start = 10;
  say("open file", fcntl(second, F_OFD_SETLK, &lock));
  say("flock", flock(third, LOCK_EX));
  read_often(first);
  read_often(second);
  read_often(third);
  say_in_child("posix held", posix_lock_is_held, path);
  say_in_child("open file held", open_file_lock_is_held, path);
  say_in_child("flock held", flock_is_held, path);
  close(second);
  dup2(first, third);
  say_in_child("open file held after its close", open_file_lock_is_held, path);
  say_in_child("flock held after dup2 over it", flock_is_held, path);
}

static volatile sig_atomic_t signals;
static void count(int signal) {
  (void)signal;
  signals = signals + 1;
}

static void lease(const char* path) {
  signal(SIGIO, count);
  const int fd = open_file(path, O_RDONLY);
  say("lease", fcntl(fd, F_SETLEASE, F_WRLCK));
  read_often(fd);
  say("lease after reads", fcntl(fd, F_GETLEASE));
  say("signals", signals);
}

static void events(const char* path) {
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  inotify_add_watch(watch, path, IN_OPEN | IN_CLOSE);
  const int fd = open_file(path, O_RDONLY);
  read_often(fd);
  close(fd);
  _Alignas(struct inotify_event) char buffer[8192];
  const ssize_t bytes = read(watch, buffer, sizeof(buffer));
  int opens = 0;
  int closes = 0;
  for (ssize_t at = 0; at < bytes;) {
    const struct inotify_event* const event = (const struct inotify_event*)(buffer + at);
    opens += (event->mask & IN_OPEN) != 0;
    closes += (event->mask & IN_CLOSE) != 0;
    at += (ssize_t)(sizeof(*event) + event->len);
  }
  say("opens", opens);
  say("closes", closes);
}

static void bad_pointers(const char* path) {
  const int fd = open_file(path, O_RDONLY);
  read_often(fd);
  void* const bad = (void*)-1;
  const struct iovec endless[2] = {{page, (size_t)-1}, {page, 1}};
  const struct iovec null_part[2] = {{page, 10}, {NULL, 10}};
  const struct iovec two[2] = {{page, 10}, {page + 10, 20}};
  say("pread to null", pread(fd, null_pointer, 100, 0));
  say("pread to a constant", pread(fd, (void*)"constant", 5, 0));
  say("pread to no address", pread(fd, bad, 100, 0));
  say("preadv of bad parts", preadv(fd, (const struct iovec*)bad, 2, 0));
  say("preadv of one bad part", preadv(fd, (const struct iovec*)bad, 1, 0));
  say("preadv of endless parts", preadv(fd, endless, 2, 0));
  say("preadv of one endless part", preadv(fd, endless, 1, 0));
  say("preadv with a null part", preadv(fd, null_part, 2, 0));
  say("preadv of two parts", preadv(fd, two, 2, 0));
  say("preadv of -1 parts", preadv(fd, two, minus_one, 0));
  say("pread before the beginning", pread(fd, page, 10, -5));
  say("pread of nothing", pread(fd, page, 0, 0));
}

static int reads_on(const char* path) {
  const int fd = open_file(path, O_RDONLY);
  read_often(fd);
  return 7;
}

static void unshared(const char* path) {
  const int fd = open_file(path, O_RDONLY);
  read_often(fd);
  say("unshare", unshare(CLONE_FILES));
  say_in_child("child", reads_on, path);
  read_often(fd);
  say("pread", pread(fd, page, 100, 0));
}

static sigjmp_buf back;
static void leave(int signal) { siglongjmp(back, signal); }

static void own_handlers(const char* path) {
  struct sigaction action = {.sa_handler = leave};
  sigfillset(&action.sa_mask);
  const int fd = open_file(path, O_RDWR);
  say("sigaction", sigaction(SIGBUS, &action, NULL));
  read_often(fd);
  say("signal", signal(SIGSEGV, leave) == SIG_DFL);
  struct sigaction found;
  say("sigaction", sigaction(SIGBUS, NULL, &found));
  say("mine", found.sa_handler == leave && sigismember(&found.sa_mask, SIGSEGV) == 1);
  say("mine", signal(SIGSEGV, leave) == leave);
  volatile char* const mapping = mmap(NULL, 16 * kPage, PROT_READ, MAP_SHARED, fd, 0);
  say("truncate", ftruncate(fd, kPage));
  int got = sigsetjmp(back, 1);
  if (got == 0) say("touched", mapping[8 * kPage]);
  say("handled", got == SIGBUS);
  got = sigsetjmp(back, 1);
  if (got == 0) say("touched", *(volatile char*)null_pointer);
  say("handled", got == SIGSEGV);
  say("pread", pread(fd, page, kPage, 8 * kPage));
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  say("extend", ftruncate(fd, 16 * kPage));
  read_often(fd);
  say("truncate", ftruncate(fd, 100));
  say("pread", pread(fd, page, kPage, 8 * kPage));
  say("pread", pread(fd, page, kPage, 0));
}

static void limits(const char* path) {
  const int fd = open_file(path, O_RDONLY);
  read_often(fd);
  const struct rlimit limit = {1ul << 30, 1ul << 30};
  say("setrlimit", setrlimit(RLIMIT_AS, &limit));
  read_often(fd);
  say("mlockall", mlockall(MCL_FUTURE) == 0 || errno == ENOMEM || errno == EPERM);
  read_often(fd);
  free(malloc(100 << 20));
  say("pread", pread(fd, page, kPage, 0));
}

static void strict(const char* path) {
  const int fd = open_file(path, O_RDONLY);
  const int other = open_file(path, O_RDONLY);
  for (int i = 0; i < kReads && read(fd, page, 16) == 16; i++) {
  }
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) exit(2);
  long bytes = 0;
  for (ssize_t got = 0; (got = read(fd, page, kPage)) > 0;) bytes += got;
  for (ssize_t got = 0; (got = read(other, page, kPage)) > 0;) bytes += got;
  static const char done[] = "done\n";
  if (write(STDOUT_FILENO, done, sizeof(done) - 1) < 0) syscall(SYS_exit, 1);
  syscall(SYS_exit, bytes == 0);
}

enum { kThreads = 8, kFiles = 1300 };
static const char* folder_of_files;

/// A file of its own for each thread, whose descriptors take each other's numbers.
static void* read_own_file(void* number) {
  const unsigned char fill = (unsigned char)(uintptr_t)number;
  char path[4096];
  snprintf(path, sizeof(path), "%s.%d", folder_of_files, fill);
  unsigned char own[2 * kPage];
  const int write_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  memset(own, fill, sizeof(own));
  for (int i = 0; i < 16; i++) {
    if (write(write_fd, own, sizeof(own)) < 0) perror("write");
  }
  close(write_fd);
  long wrong = 0;
  for (int round = 0; round < 300; round++) {
    const int fd = open_file(path, O_RDONLY);
    for (int i = 0; i < 60; i++) {
      const ssize_t got = i % 2 == 0 ? pread(fd, own, sizeof(own), i % 15 * kPage) : read(fd, own, kPage);
      for (ssize_t at = 0; at < got; at++) wrong += own[at] != fill;
      if (got < 0) wrong++;
    }
    close(fd);
  }
  unlink(path);
  return (void*)(uintptr_t)wrong;
}

static void threads(const char* path) {
  pthread_t thread[kThreads];
  folder_of_files = path;
  long wrong = 0;
  for (int i = 0; i < kThreads; i++) pthread_create(&thread[i], NULL, read_own_file, (void*)(uintptr_t)(i + 1));
  for (int i = 0; i < kThreads; i++) {
    void* result = NULL;
    pthread_join(thread[i], &result);
    wrong += (long)(uintptr_t)result;
  }
  say("wrong bytes", wrong);
}

static int number_in_child = -1;
static atomic_int reading = 1;

static void* map_and_unmap(void* path) {
  while (reading) {
    const int fd = open_file(path, O_RDONLY);
    for (int i = 0; i < 400; i++) pread(fd, page, 256, 0);
    close(fd);
  }
  return NULL;
}

static void close_in_child(void) { close(number_in_child); }

/// Kills a child that does not end within ten seconds.
static int end_of(pid_t child) {
  const struct timespec moment = {0, 100000};
  int status = 0;
  for (int i = 0; waitpid(child, &status, WNOHANG) == 0; i++) {
    if (i == 100000) kill(child, SIGKILL);
    nanosleep(&moment, NULL);
  }
  return status;
}

/// The handler must not wait for threads that only the parent has.
static void handlers_of_forks(const char* path) {
  pthread_t thread[2];
  number_in_child = open_file(path, O_RDONLY);
  read_often(number_in_child);
  say("pthread_atfork", pthread_atfork(NULL, NULL, close_in_child));
  for (int i = 0; i < 2; i++) pthread_create(&thread[i], NULL, map_and_unmap, (void*)path);
  int status = 0;
  for (int i = 0; i < 200 && status == 0; i++) {
    const pid_t child = fork();
    if (child == 0) _exit(fcntl(number_in_child, F_GETFD) == -1 ? 0 : 1);
    status = end_of(child);
  }
  reading = 0;
  for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
  say("child", status);
}

/// More files than there are mappings.
static void many_files(const char* path) {
  const struct rlimit limit = {2 * kFiles, 2 * kFiles};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) perror("setrlimit");
  static int fds[kFiles];
  for (int i = 0; i < kFiles; i++) fds[i] = open_file(path, O_RDONLY);
  long wrong = 0;
  for (int round = 0; round < 60; round++) {
    for (int i = 0; i < kFiles; i++) {
      wrong += pread(fds[i], page, 256, (i % 16) * kPage) != 256;
      for (int at = 0; at < 256; at++) wrong += (unsigned char)page[at] != at;
    }
  }
  say("wrong", wrong);
}

int main(int words, char** word) {
  static const struct {
    const char* name;
    void (*body)(const char*);
  } cases[] = {
      {"locks", locks},      {"lease", lease},           {"events", events},           {"bad-pointers", bad_pointers},
      {"unshare", unshared}, {"handlers", own_handlers}, {"limits", limits},           {"strict", strict},
      {"threads", threads},  {"many-files", many_files}, {"atfork", handlers_of_forks}};
  for (size_t i = 0; words == 3 && i < sizeof(cases) / sizeof(cases[0]); i++) {
    if (strcmp(word[1], cases[i].name) == 0) {
      cases[i].body(word[2]);
      return 0;
    }
  }
  fprintf(stderr, "usage: files_native_results CASE FILE\n");
  return 2;
}
