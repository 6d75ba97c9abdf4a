// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native_calls.hpp"

static char long_name[PATH_MAX + 100];

struct Name {
  const char* what;
  const char* name;  // in the folder; null: the next one
  const char* path;
};

static const struct Name names[] = {
    {"a file", "file", NULL},
    {"a missing file", "missing", NULL},
    {"a directory", "directory", NULL},
    {"a name below a file", "file/below", NULL},
    {"a file with a slash", "file/", NULL},
    {"a link", "link", NULL},
    {"a loop", "loop", NULL},
    {"a link to nothing", "dangling", NULL},
    {"a pipe", "pipe", NULL},
    {"no name", NULL, ""},
    {"a long name", NULL, long_name},
};

static const int flags[] = {O_RDONLY,
                            O_WRONLY | O_NONBLOCK,
                            O_RDWR,
                            O_RDONLY | O_TRUNC | O_NONBLOCK,
                            O_RDONLY | O_DIRECTORY,
                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
                            O_PATH,
                            O_PATH | O_NOFOLLOW,
                            O_RDWR | O_CREAT | O_EXCL,
                            O_RDONLY | O_CREAT | O_DIRECTORY,
                            O_RDWR | O_TMPFILE,
                            O_RDONLY | O_TMPFILE,
                            O_WRONLY | O_RDWR | O_NONBLOCK,
                            O_RDONLY | O_DIRECT};

static const char* path_of(const struct Name* name) { return name->name != NULL ? in_folder(name->name) : name->path; }

static void say_open(const char* what, const struct Name* name, int fd) {
  say(what, name->what, fd);
  if (fd >= 0) close(fd);
}

static void open_by_all_flags(const struct Name* name) {
  for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
    // To wait at the pipe is right, and no use.
    const int more = strcmp(name->what, "a pipe") == 0 ? O_NONBLOCK : 0;
    char what[64];
    snprintf(what, sizeof(what), "open by %o", (unsigned)flags[i]);
    say_open(what, name, open(path_of(name), flags[i] | more, 0600));
    unlink(in_folder("missing"));
  }
  say_open("open of no directory", name, openat(INT_MAX, "file", O_RDONLY));
  struct open_how how = {.flags = O_RDONLY | O_NONBLOCK, .resolve = RESOLVE_NO_SYMLINKS};
  say_open("openat2", name, (int)syscall(SYS_openat2, AT_FDCWD, path_of(name), &how, sizeof(how)));
  how.flags = 1UL << 60;
  say_open("openat2 by unknown flags", name, (int)syscall(SYS_openat2, AT_FDCWD, path_of(name), &how, sizeof(how)));
  say_open("openat2 of few bytes", name, (int)syscall(SYS_openat2, AT_FDCWD, path_of(name), &how, 3UL));
}

static void open_by_stdio(const struct Name* name) {
  static const char* const modes[] = {"r", "r+", "a", "wx", "?", ""};
  for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]) && strcmp(name->what, "a pipe") != 0; i++) {
    char what[64];
    snprintf(what, sizeof(what), "fopen by '%s'", modes[i]);
    FILE* const file = fopen(path_of(name), modes[i]);
    say(what, name->what, file == NULL ? -1 : fileno(file));
    if (file != NULL) fclose(file);
    unlink(in_folder("missing"));
  }
}

static void execute(const struct Name* name) {
  char* const words[] = {(char*)"x", NULL};
  char* const none[] = {NULL};
  const int at = open(in_folder("."), O_RDONLY | O_CLOEXEC);
  say("execve", name->what, execve(path_of(name), words, none));
  say("execv", name->what, execv(path_of(name), words));
  say("execveat", name->what, execveat(at, name->name != NULL ? name->name : path_of(name), words, none, 0));
  say("execveat by unknown flags", name->what, execveat(at, path_of(name), words, none, 1 << 20));
  close(at);
}

static void change(const struct Name* name) {
  say("truncate", name->what, truncate(path_of(name), 100));
  say("truncate by a negative length", name->what, truncate(path_of(name), -1));
  if (strcmp(name->what, "a pipe") != 0) say_open("creat", name, creat(path_of(name), 0600));
  DIR* const directory = opendir(path_of(name));
  say("opendir", name->what, directory == NULL ? -1 : dirfd(directory));
  if (directory != NULL) closedir(directory);
}

/// With all descriptors in use.
static void open_at_the_limit(void) {
  struct rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const struct rlimit few = {20, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  int last = -1;
  for (int fd = 0; fd >= 0; fd = open(in_folder("file"), O_RDONLY | O_CLOEXEC)) last = fd;
  say("the last one", "all descriptors", last);
  say("open", "all descriptors", open(in_folder("file"), O_RDONLY));
  say("fopen", "all descriptors", fopen(in_folder("file"), "r") == NULL ? -1 : 0);
  char byte;
  long right = 0;
  for (int i = 0; i < 2000; i++) right += pread(3 + i % 17, &byte, 1, i) == 1;
  say("reads", "all descriptors", right);
  say("system", "all descriptors", system("exit 3"));
  close_range(3, UINT_MAX, 0);
  setrlimit(RLIMIT_NOFILE, &before);
}

void make_calls_by_name(void) {
  memset(long_name, 'x', sizeof(long_name) - 1);
  if (symlink("loop", in_folder("loop")) != 0 || symlink("none", in_folder("dangling")) != 0) perror("symlink");
  if (mkfifo(in_folder("pipe"), 0600) != 0) perror("mkfifo");
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    open_by_all_flags(&names[i]);
    open_by_stdio(&names[i]);
    execute(&names[i]);
    change(&names[i]);
    unlink(in_folder("missing"));
    unlink(in_folder("none"));
  }
  open_at_the_limit();
}
