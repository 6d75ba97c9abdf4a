/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of a file call, for both C interfaces (docs/files.md), and a call that sets the path of a descriptor. That
 * call exists only in programs that run by `wherry run --files`: test for it, and link nothing.
 *
 *   if (wherry_fd_set_path) wherry_fd_set_path(fd, WHERRY_PATH_KERNEL);
 */
#ifndef WHERRY_FILE_PATH_H
#define WHERRY_FILE_PATH_H

#ifdef __cplusplus
extern "C" {
#endif

/* WHERRY_PATH_AS_SET: the path with which the file was opened, or that was set later. In the options of an open:
 * WHERRY_FILE_PATH. */
#define WHERRY_PATH_AS_SET 0
#define WHERRY_PATH_AUTO \
  1 /* a file of this machine: as CACHE where that is faster, else as KERNEL; of a host: as HOST */
#define WHERRY_PATH_KERNEL 2 /* the kernel's own call; -EOPNOTSUPP for a file of a host */
#define WHERRY_PATH_CACHE  3 /* copied from the kernel's page cache; -EOPNOTSUPP for a file of a host */
#define WHERRY_PATH_CARD   4 /* reserved for files of a card's mount; not implemented: -EOPNOTSUPP */
#define WHERRY_PATH_HOST   5 /* the host's server; -EOPNOTSUPP for a file of this machine */

/* Sets the path of later reads and writes of a descriptor, until it is closed. Other descriptors of the same file keep
 * their path. WHERRY_PATH_CACHE reads in place from the kernel's page cache, WHERRY_PATH_AUTO where that is faster. On
 * a mount without passthrough, WHERRY_PATH_HOST sends pread and pwrite straight to the host's server, and
 * WHERRY_PATH_AUTO those of 64 KiB and more where that is faster. The kernel makes all other calls. Returns 0; or -1
 * with errno EBADF, or EINVAL for an invalid path, which WHERRY_PATH_AS_SET is too. May be called from any thread;
 * makes a few system calls. */
#if defined(__GNUC__)
__attribute__((weak))
#endif
int wherry_fd_set_path(int fd, int path);

#ifdef __cplusplus
}
#endif

#endif
