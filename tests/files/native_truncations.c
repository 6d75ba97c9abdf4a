// SPDX-License-Identifier: Apache-2.0
//
// files_native_truncations FILE: empties FILE by each call that can do it, while it is read in place, puts a few bytes
// there, and reads: the end must be known at once. Prints how many bytes it finds: the same natively and by wherry run
// --files. An ordinary program.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096, kPages = 16, kReads = 2000, kRounds = 10 };

static const char* path;
static char command[5000];
extern char** environ;

static void by_open(void) { close(open(path, O_WRONLY | O_TRUNC)); }
static void by_creat(void) { close(creat(path, 0600)); }
static void by_number(void) { close((int)syscall(SYS_open, path, O_WRONLY | O_TRUNC)); }
static void by_fopen(void) { fclose(fopen(path, "w+")); }
static void by_freopen(void) { fclose(freopen(path, "w", fopen("/dev/null", "r"))); }
static void by_truncate(void) {
  if (truncate(path, 0) != 0) perror("truncate");
}
static void by_vfork(void) {
  const pid_t child = vfork();
  if (child == 0) _exit(open(path, O_WRONLY | O_TRUNC) < 0);
  waitpid(child, NULL, 0);
}
static void by_exec(void) {
  const pid_t child = fork();
  if (child == 0) _exit(execlp("truncate", "truncate", "-s", "0", path, (char*)NULL));
  waitpid(child, NULL, 0);
}
static void by_shell(void) {
  snprintf(command, sizeof(command), ": > '%s'", path);
  if (system(command) != 0) perror("system");
}
static void by_posix_spawn(void) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, path, O_WRONLY | O_TRUNC, 0600);
  char* words[] = {(char*)"true", NULL};
  pid_t child = -1;
  if (posix_spawnp(&child, "true", &actions, NULL, words, environ) != 0) perror("posix_spawnp");
  posix_spawn_file_actions_destroy(&actions);
}
/// Allowed to root only: the others open it.
static void by_handle(void) {
  static union {
    struct file_handle handle;
    char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
  } file;
  file.handle.handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  const int beside = open(path, O_RDONLY);
  int fd = -1;
  if (name_to_handle_at(AT_FDCWD, path, &file.handle, &mount, 0) == 0) {
    fd = open_by_handle_at(beside, &file.handle, O_WRONLY | O_TRUNC);
  }
  if (fd < 0) by_open();
  close(fd);
  close(beside);
}
/// Of a file in /dev/shm.
static void by_shm_open(void) {
  static const char folder[] = "/dev/shm";
  const size_t length = sizeof(folder) - 1;
  const int shared = strncmp(path, folder, length) == 0 && strchr(path + length + 1, '/') == NULL;
  close(shared ? shm_open(path + length, O_RDWR | O_TRUNC, 0600) : open(path, O_WRONLY | O_TRUNC));
}

static const struct {
  const char* name;
  void (*empty)(void);
} ways[] = {{"open", by_open},
            {"creat", by_creat},
            {"its number", by_number},
            {"fopen", by_fopen},
            {"freopen", by_freopen},
            {"truncate", by_truncate},
            {"vfork", by_vfork},
            {"exec", by_exec},
            {"a shell", by_shell},
            {"posix_spawn", by_posix_spawn},
            {"open_by_handle_at", by_handle},
            {"shm_open", by_shm_open}};

static void fill(void) {
  static char page[kPage];
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  memset(page, 'a', sizeof(page));
  for (int i = 0; i < kPages; i++) {
    if (write(fd, page, sizeof(page)) != kPage) perror("write");
  }
  close(fd);
}

/// The bytes that are found in the file after it was emptied and has got seven.
static long read_after(void (*empty)(void)) {
  static char page[kPage];
  fill();
  const int fd = open(path, O_RDONLY);
  for (int i = 0; i < kReads; i++) {
    if (pread(fd, page, 1000, i % (kPages - 1) * kPage) != 1000) perror("pread");
  }
  empty();
  const int writing = open(path, O_WRONLY);
  if (write(writing, "1234567", 7) != 7) perror("write");
  close(writing);
  const long bytes = pread(fd, page, 1000, 0);
  close(fd);
  return bytes;
}

int main(int words, char** word) {
  if (words != 2) {
    fprintf(stderr, "usage: files_native_truncations FILE\n");
    return 2;
  }
  path = word[1];
  for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
    long bytes = 0;
    for (int round = 0; round < kRounds; round++) bytes += read_after(ways[i].empty);
    printf("%s: %ld\n", ways[i].name, bytes);
  }
  printf("done\n");
  return 0;
}
