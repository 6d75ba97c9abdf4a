// SPDX-License-Identifier: Apache-2.0
//
// Gives bad pointers to each call that a library may stand in front of, and prints what each answers. An ordinary
// program: tests/e2e/test_bad_pointers.py compares what it prints with and without Wherry.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

enum { kPage = 4096, kKinds = 7 };

static const char* const kind_names[kKinds] = {"null", "low", "kernel", "unmapped", "forbidden", "ends", "read-only"};
static char* kinds[kKinds];
static const char* kind;
static char* bad;
static int file;
static char folder[4096];

static void show(const char* call, long result) {
  printf("%s %s: %ld %s\n", call, kind, result, result < 0 ? strerrorname_np(errno) : "");
  fflush(stdout);
}

// Those that fail without errno.
static void show_error(const char* call, int error) {
  printf("%s %s: %s\n", call, kind, strerrorname_np(error)), fflush(stdout);
}

static void make_kinds(void) {
  char* const pages = mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(pages, 'x', 4 * kPage);
  kinds[0] = NULL;
  kinds[1] = (char*)1;
  kinds[2] = (char*)-4096;
  kinds[3] = pages + 3 * kPage;
  munmap(kinds[3], kPage);
  kinds[4] = pages + 2 * kPage;
  mprotect(kinds[4], kPage, PROT_NONE);
  kinds[5] = pages + 2 * kPage - 4;  // four bytes, and then none
  kinds[6] = pages;
  mprotect(kinds[6], kPage, PROT_READ);
}

// What calls have stored where it can be stored; a string without an end is wanted.
static void refill(void) { memset(kinds[5], 'x', 4); }

static void try_names(void) {
  if (kind == kind_names[6]) return;  // may be read
  char* const words[] = {"x", NULL};
  show("open", open(bad, O_RDONLY));
  show("open64", open64(bad, O_RDONLY));
  show("openat", openat(AT_FDCWD, bad, O_RDONLY));
  show("creat", creat(bad, 0600));
  show("truncate", truncate(bad, 0));
  show("execve", execve(bad, words, environ));
  show("execv", execv(bad, words));
  show("execl", execl(bad, "x", (char*)NULL));
  show("execveat", execveat(AT_FDCWD, bad, words, environ, 0));
  show("execveat of descriptor", execveat(file, bad, words, environ, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
  show("fopen", fopen(bad, "r") == NULL ? -1 : 0);
  FILE* const opened = fopen("/dev/null", "r");
  show("freopen", freopen(bad, "r", opened) == NULL ? -1 : 0);
  pid_t child = 0;
  show_error("posix_spawn", posix_spawn(&child, bad, NULL, NULL, words, environ));
  show("syscall open", syscall(SYS_open, bad, O_RDONLY));
  show("syscall execve", syscall(SYS_execve, bad, words, environ));
  show("syscall openat2", syscall(SYS_openat2, AT_FDCWD, "/dev/null", bad, sizeof(struct open_how)));
}

static void try_buffers(void) {
  struct iovec part = {bad, 64};
  show("read", read(file, bad, 64));
  show("pread", pread(file, bad, 64, 0));
  show("readv", readv(file, &part, 1));
  show("preadv", preadv(file, &part, 1, 0));
  show("preadv2", preadv2(file, &part, 1, 0, 0));
  show("preadv2 flags", preadv2(file, &part, 1, 0, RWF_HIPRI));
  show("lseek", lseek(file, 0, SEEK_SET));
  show("syscall read", syscall(SYS_read, file, bad, 64));
  if (kind == kind_names[6]) return;  // may be written from
  show("write", write(file, bad, 64));
  show("pwrite", pwrite(file, bad, 64, 0));
  show("writev", writev(file, &part, 1));
  show("pwritev", pwritev(file, &part, 1, 0));
  show("pwritev2", pwritev2(file, &part, 1, 0, 0));
  show("pwritev2 append", pwritev2(file, &part, 1, 0, RWF_APPEND));
}

static void try_lists(void) {
  const struct iovec* const parts = (const struct iovec*)bad;
  if (kind == kind_names[6]) return;  // x in each byte of it: another error, which is tried below
  for (int count = -1; count <= 4000; count = count < 3 ? count + 1 : count * 32) {
    printf("%d: ", count);
    show("readv list", readv(file, parts, count));
    show("preadv list", preadv(file, parts, count, 0));
    show("preadv2 list", preadv2(file, parts, count, -1, 0));
    show("writev list", writev(file, parts, count));
    show("pwritev list", pwritev(file, parts, count, 0));
    show("pwritev2 list", pwritev2(file, parts, count, 0, 0));
    show("syscall pwritev list", syscall(SYS_pwritev, file, parts, count, 0L, 0L));
    show("syscall readv list", syscall(SYS_readv, file, parts, count));
  }
}

// The same of a descriptor that has been read so often that a library may answer for the kernel.
static void try_lists_of_read_file(void) {
  char to[512];
  file = open(folder, O_RDONLY);
  for (int i = 0; i < 40000; i++) (void)!pread(file, to, sizeof(to), i % 100 * sizeof(to));
  for (int i = 0; i < kKinds; i++) {
    kind = kind_names[i];
    bad = kinds[i];
    try_lists();
  }
  close(file);
}

static void try_offsets(void) {
  int ends[2];
  if (kind == kind_names[0] || pipe(ends) != 0) return;  // null is the file's own offset
  loff_t* const offset = (loff_t*)bad;
  show("copy_file_range from", copy_file_range(file, offset, file, NULL, 1, 0));
  show("copy_file_range to", copy_file_range(file, NULL, file, offset, 1, 0));
  show("sendfile", sendfile(ends[1], file, offset, 1));
  show("splice", splice(file, offset, ends[1], NULL, 1, 0));
  show("ioctl", ioctl(file, FIONREAD, offset));
  show("fcntl", fcntl(file, F_GETLK, offset));
  close(ends[0]);
  close(ends[1]);
}

static void try_messages(int socket) {
  char byte = 'x';
  struct iovec part = {&byte, 1};
  struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}}};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = bad, .msg_controllen = 64};
  messages[1].msg_hdr = message;
  if (kind != kind_names[6]) {
    show("sendmsg", sendmsg(socket, (struct msghdr*)bad, MSG_DONTWAIT));
    show("sendmmsg", sendmmsg(socket, (struct mmsghdr*)bad, 3, MSG_DONTWAIT));
    show("syscall sendmsg", syscall(SYS_sendmsg, socket, bad, MSG_DONTWAIT));
  }
  show("sendmsg control", sendmsg(socket, &message, MSG_DONTWAIT));
  show("sendmmsg control", sendmmsg(socket, messages, 2, MSG_DONTWAIT));
  message.msg_controllen = SIZE_MAX;
  show("sendmsg endless control", sendmsg(socket, &message, MSG_DONTWAIT));
}

static void try_environments(void) {
  if (kind == kind_names[0] || kind == kind_names[6]) return;  // null is allowed
  char* const words[] = {"true", NULL};
  char* const variables[] = {"A=1", bad, NULL};
  char** const list = (char**)bad;
  pid_t child = 0;
  const int program = open("/bin/true", O_RDONLY | O_CLOEXEC);
  show("execve words", execve("/bin/true", list, environ));
  show("execve environment", execve("/bin/true", words, list));
  show("execve variable", execve("/bin/true", words, variables));
  show("execveat environment", execveat(AT_FDCWD, "/bin/true", words, list, 0));
  show("fexecve environment", fexecve(program, words, list));
  show("execle environment", execle("/bin/true", "true", (char*)NULL, list));
  show("syscall execve environment", syscall(SYS_execve, "/bin/true", words, list));
  show_error("posix_spawn environment", posix_spawn(&child, "/bin/true", NULL, NULL, words, list));
  show_error("posix_spawn variable", posix_spawn(&child, "/bin/true", NULL, NULL, words, variables));
  show_error("posix_spawnp environment", posix_spawnp(&child, "true", NULL, NULL, words, list));
  close(program);
}

static void ended_child(void) {
  const pid_t child = fork();
  if (child == 0) _exit(7);
  siginfo_t info;
  waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
}

static void show_wait(const char* call, long result) { show(call, result > 0 ? 1 : result); }

static void try_waits(void) {
  ended_child();
  show_wait("wait", wait((int*)bad));
  ended_child();
  show_wait("waitpid", waitpid(-1, (int*)bad, 0));
  ended_child();
  show_wait("wait3", wait3((int*)bad, 0, NULL));
  ended_child();
  show_wait("wait4", wait4(-1, NULL, 0, (struct rusage*)bad));
  ended_child();
  show_wait("waitid", waitid(P_ALL, 0, (siginfo_t*)bad, WEXITED));
  show_wait("waitid without a child", waitid(P_ALL, 0, (siginfo_t*)bad, WEXITED));
  show("syscall clone3", syscall(SYS_clone3, bad, kind == kind_names[6] ? 8 : sizeof(struct clone_args)));
}

// At the end: a library may give up all it does for a process with such rings.
static void try_rings(void) {
  for (int i = 0; i < kKinds; i++) {
    kind = kind_names[i];
    bad = kinds[i];
    show("syscall io_setup", syscall(SYS_io_setup, 1, bad));
    show("syscall io_uring_setup", syscall(SYS_io_uring_setup, 1, bad));
  }
}

// Of good pointers to lies.
static void try_lies(int socket) {
  kind = "lie";
  char byte[2] = "x";
  struct iovec parts[3] = {{byte, (size_t)-1}, {byte, 1}, {byte, (size_t)-1}};
  for (int first = 0; first < 2; first++) {
    show("readv length", readv(file, parts + first, 2));
    show("preadv length", preadv(file, parts + first, 2, 0));
    show("writev length", writev(file, parts + first, 2));
    show("pwritev length", pwritev(file, parts + first, 2, 0));
  }
  show("readv one length", readv(file, parts, 1));
  show("preadv one length", preadv(file, parts, 1, 0));
  show("preadv2 one length", preadv2(file, parts, 1, 0, 0));
  show("preadv negative offset", preadv(file, parts + 1, 1, -2));
  char room[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec part = {byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
  struct cmsghdr* const control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  for (int step = 0; step < 4; step++) {
    control->cmsg_len = (size_t[]){0, 1, (size_t)1 << 30, SIZE_MAX}[step];
    show("sendmsg long control", sendmsg(socket, &message, MSG_DONTWAIT));
  }
}

int main(int count, char** words) {
  if (count != 2) return 2;
  snprintf(folder, sizeof(folder), "%s", words[1]);
  file = open(folder, O_RDWR | O_CREAT | O_TRUNC, 0600);
  char content[kPage] = {0};
  for (int i = 0; i < 32; i++) (void)!write(file, content, sizeof(content));
  close(file);
  make_kinds();
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) != 0) return 1;
  for (int flags = O_RDONLY; flags <= O_RDWR; flags += O_RDWR - O_RDONLY) {
    file = open(folder, flags);
    printf("opened to %s\n", flags == O_RDONLY ? "read" : "write");
    for (int i = 0; i < kKinds; i++) {
      kind = kind_names[i];
      bad = kinds[i];
      refill();
      try_names();
      try_buffers();
      try_lists();
      try_offsets();
      try_messages(sockets[0]);
      refill();
      try_environments();
      try_waits();
    }
    try_lies(sockets[0]);
    close(file);
  }
  try_lists_of_read_file();
  try_rings();
  puts("done");
  return 0;
}
