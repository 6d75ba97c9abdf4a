// SPDX-License-Identifier: Apache-2.0
// reader FILE...: prints files, each a path or wherry://NODE:PORT/PATH of a `wherry serve`.
#include <wherry/wherry.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** names) {
  for (int i = 1; i < count; i++) {
    char buffer[4096];
    int64_t got = 0;
    wherry_file file = WHERRY_NONE;
    if (wherry_file_open(names[i], O_RDONLY, 0, NULL, &file) < 0) {
      fprintf(stderr, "%s\n", wherry_last_error());
      return 1;
    }
    for (uint64_t at = 0; (got = wherry_file_pread(file, buffer, sizeof buffer, at, WHERRY_PATH_AS_SET)) > 0;) {
      fwrite(buffer, 1, (size_t)got, stdout);
      at += (uint64_t)got;
    }
    if (got < 0) fprintf(stderr, "%s: %s\n", names[i], strerror((int)-got));
    if (wherry_file_close(file) < 0 || got < 0) return 1;
  }
  return fflush(stdout) == 0 ? 0 : 1;
}
