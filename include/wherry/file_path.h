/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that may run by `wherry run --files` and know more of one of their files than Wherry (docs/files.md).
 * The function is there only then: ask first, and link nothing.
 *
 *   if (wherry_file_set_path) wherry_file_set_path(fd, WHERRY_FILE_PATH_LOCAL);
 */
#ifndef WHERRY_FILE_PATH_H
#define WHERRY_FILE_PATH_H

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTNEXTLINE(readability-identifier-naming): a name of C */
enum wherry_file_path {
  WHERRY_FILE_PATH_AUTO = 0,  /* fills the cache by reads that pay */
  WHERRY_FILE_PATH_LOCAL = 1, /* the kernel's calls alone */
  WHERRY_FILE_PATH_COMP = 2   /* every read fills the cache */
};

/* How reads of this descriptor go from now on, until it is closed; of no other, be it of the same file. Writes are the
 * same with all. 0; or -1, and errno is EBADF, or EINVAL for a path that is none. From any thread; makes a few system
 * calls. */
#if defined(__GNUC__)
__attribute__((weak))
#endif
int wherry_file_set_path(int fd, int path);

#ifdef __cplusplus
}
#endif

#endif
