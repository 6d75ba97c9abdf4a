/* SPDX-License-Identifier: Apache-2.0 */
/* The paths that a file call may take, for both C interfaces (docs/files.md), and the call by which a program that runs
 * by `wherry run --files` chooses one for a descriptor. That call exists only there: test for it, and link nothing.
 *
 *   if (wherry_fd_set_path) wherry_fd_set_path(fd, WHERRY_PATH_KERNEL);
 */
#ifndef WHERRY_FILE_PATH_H
#define WHERRY_FILE_PATH_H

#ifdef __cplusplus
extern "C" {
#endif

/* WHERRY_PATH_AS_SET: as the file was opened or set; in the options of an open WHERRY_FILE_PATH. */
#define WHERRY_PATH_AS_SET 0
#define WHERRY_PATH_AUTO \
  1 /* a file of this machine: as CACHE where that is faster, else as KERNEL; of a host: as HOST */
#define WHERRY_PATH_KERNEL 2 /* the kernel's own call; -EOPNOTSUPP for a file of a host */
#define WHERRY_PATH_CACHE  3 /* copied from the kernel's page cache; -EOPNOTSUPP for a file of a host */
#define WHERRY_PATH_CARD   4 /* kept for files of a card's mount; no file has it yet: -EOPNOTSUPP */
#define WHERRY_PATH_HOST   5 /* the host's server; -EOPNOTSUPP for a file of this machine */

/* Sets the path of later reads of a descriptor, until it is closed; other descriptors of the same file keep theirs.
 * Writes are the same on all paths. WHERRY_PATH_CACHE reads in place from the kernel's page cache, WHERRY_PATH_AUTO
 * does so where that is faster, all others leave reads to the kernel. Returns 0; or -1, and errno is EBADF, or EINVAL
 * for any other path, WHERRY_PATH_AS_SET too. From any thread; makes a few system calls. */
#if defined(__GNUC__)
__attribute__((weak))
#endif
int wherry_fd_set_path(int fd, int path);

#ifdef __cplusplus
}
#endif

#endif
