// SPDX-License-Identifier: Apache-2.0
//
// files_native_places CASE FILE: reads FILE until it is mapped, where it is read in place, and gives the addresses of
// the mapping to something else. Prints what it finds there and in FILE: the same natively and by wherry run --files.
// An ordinary program, which looks at its environment only to say that it has not found the mapping.
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPage = 4096, kReads = 20000, kBytes = 1 << 16, kSign = 0xab };

static const int kAccess = PROT_READ | PROT_WRITE;
static const int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
static char page[kPage];
// Mapped before the file: natively no place in it is free.
static char* other;

static char* by_mmap(char* place) { return mmap(place, kBytes, kAccess, kFlags | MAP_FIXED, -1, 0); }
static char* where_nothing_is(char* place) { return mmap(place, kBytes, kAccess, kFlags | MAP_FIXED_NOREPLACE, -1, 0); }
static char* by_number(char* place) {
  return (char*)syscall(SYS_mmap, place, (long)kBytes, kAccess, kFlags | MAP_FIXED, -1, 0L);
}
static char* by_mremap(char* place) { return mremap(other, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, place); }
static char* after_munmap(char* place) { return munmap(place, kBytes) == 0 ? by_mmap(place) : NULL; }

static char* attach(char* place, int flags, int by_its_number) {
  const int segment = shmget(IPC_PRIVATE, kBytes, IPC_CREAT | 0600);
  char* const there =
      by_its_number ? (char*)syscall(SYS_shmat, segment, place, (long)flags) : shmat(segment, place, flags);
  shmctl(segment, IPC_RMID, NULL);
  return there;
}
static char* by_shmat(char* place) { return attach(place, SHM_REMAP, 0); }
static char* by_shmat_within_a_page(char* place) { return attach(place + 100, SHM_REMAP | SHM_RND, 0); }
static char* by_number_of_shmat(char* place) { return attach(place, SHM_REMAP, 1); }

/// Where the file is mapped, or would be.
static char* place_of(const char* file) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[PATH_MAX + 100];
  char* found = NULL;
  while (found == NULL && fgets(line, sizeof(line), maps) != NULL) {
    if (strstr(line, file) != NULL) found = (char*)strtoul(line, NULL, 16);
  }
  fclose(maps);
  if (found != NULL) return found;
  if (getenv("WHERRY_FILES") != NULL) puts("not mapped");
  found = mmap(NULL, kBytes, PROT_NONE, kFlags, -1, 0);
  munmap(found, kBytes);
  return found;
}

static long wrong_bytes(int fd) {
  long wrong = 0;
  for (int i = 0; i < 16; i++) {
    if (pread(fd, page, kPage, (off_t)i * kPage) != kPage) perror("pread");
    for (int at = 0; at < kPage; at++) wrong += (unsigned char)page[at] != at % 256;
  }
  return wrong;
}

static long lost_signs(const char* place) {
  long lost = 0;
  for (int i = 0; i < kBytes; i++) lost += (unsigned char)place[i] != kSign;
  return lost;
}

int main(int words, char** word) {
  static const struct {
    const char* name;
    char* (*take)(char* place);
  } cases[] = {{"mmap", by_mmap},
               {"mmap-where-nothing-is", where_nothing_is},
               {"mmap-by-number", by_number},
               {"mremap", by_mremap},
               {"munmap", after_munmap},
               {"shmat", by_shmat},
               {"shmat-within-a-page", by_shmat_within_a_page},
               {"shmat-by-number", by_number_of_shmat}};
  for (size_t i = 0; words == 3 && i < sizeof(cases) / sizeof(cases[0]); i++) {
    if (strcmp(word[1], cases[i].name) != 0) continue;
    other = mmap(NULL, kBytes, kAccess, kFlags, -1, 0);
    const int fd = open(word[2], O_RDONLY);
    for (int read = 0; read < kReads; read++) pread(fd, page, kPage, 0);
    char* const place = place_of(word[2]);
    const int taken = cases[i].take(place) == place;
    if (taken) memset(place, kSign, kBytes);
    // Read often enough to be mapped again.
    long wrong = 0;
    for (int round = 0; round < 1000; round++) wrong += wrong_bytes(fd);
    printf("taken %d, wrong %ld, lost %ld\n", taken, wrong, taken ? lost_signs(place) : 0);
    return 0;
  }
  fprintf(stderr, "usage: files_native_places CASE FILE\n");
  return 2;
}
