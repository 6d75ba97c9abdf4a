/* SPDX-License-Identifier: Apache-2.0 */
/* The paths that a file call may take, for both C interfaces (docs/files.md), and the call by which a program that runs
 * by `wherry run --files` chooses one for a descriptor. That call exists only there: test for it, and link nothing.
 *
 *   if (wherry_fd_set_path) wherry_fd_set_path(fd, WHERRY_PATH_LOCAL);
 */
#ifndef WHERRY_FILE_PATH_H
#define WHERRY_FILE_PATH_H

#ifdef __cplusplus
extern "C" {
#endif

/* WHERRY_PATH_AS_SET: as the file was opened or set; in the options of an open WHERRY_FILE_PATH. */
#define WHERRY_PATH_AS_SET 0
#define WHERRY_PATH_AUTO   1 /* the cache where it has the bytes, else what is faster */
#define WHERRY_PATH_LOCAL  2 /* the kernel's own call; -EOPNOTSUPP for a file of a host */
#define WHERRY_PATH_COMP   3 /* the cache, which every read fills, ahead of a reader in order */
#define WHERRY_PATH_OS     4 /* the card's process; where it serves no files, as WHERRY_PATH_COMP */
#define WHERRY_PATH_HOST   5 /* the host's server alone; -EOPNOTSUPP for a path of this machine */

/* Sets the path of later reads of a descriptor, until it is closed; other descriptors of the same file keep theirs.
 * Writes are the same with all paths. WHERRY_PATH_COMP and WHERRY_PATH_OS read in place from the kernel's page cache,
 * WHERRY_PATH_AUTO does so where it pays, WHERRY_PATH_LOCAL and WHERRY_PATH_HOST leave reads to the kernel. Returns 0;
 * or -1, and errno is EBADF, or EINVAL for any other path, WHERRY_PATH_AS_SET too. From any thread; makes a few system
 * calls. */
#if defined(__GNUC__)
__attribute__((weak))
#endif
int wherry_fd_set_path(int fd, int path);

#ifdef __cplusplus
}
#endif

#endif
