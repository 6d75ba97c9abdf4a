# SPDX-License-Identifier: Apache-2.0
"""A FUSE file system for tests: what a folder holds, without unnamed files, and with errors where the command line says
so, as `flush=ENOSPC` or `fsync=EIO`, `read=EIO` or `write=EIO` behind the first 64 KiB of a file. Prints each operation that concerns the end of a file. Debian's Python runs it.

    python3 strange_file_system.py FOLDER MOUNT [OPERATION=ERROR...]
"""

import errno
import os
import sys

import fusepy

GOOD_BYTES = 65536

class Mirror(fusepy.Operations):
    use_ns = True

    def __init__(self, folder, errors):
        self._folder = folder
        self._errors = errors

    def __call__(self, operation, path, *arguments):
        return super().__call__(operation, self._folder + path, *arguments)

    def _end(self, operation, path):
        print(operation, os.path.basename(path), flush=True)
        if operation in self._errors:
            raise fusepy.FuseOSError(self._errors[operation])

    def getattr(self, path, fh=None):
        status = os.lstat(path)
        times = {f"st_{which}time": getattr(status, f"st_{which}time_ns") for which in "amc"}
        return times | {name: getattr(status, name) for name in ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size")}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(path)]

    def create(self, path, mode, fi=None):
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)

    def open(self, path, flags):
        return os.open(path, flags)

    def read(self, path, size, offset, fh):
        if "read" in self._errors and offset + size > GOOD_BYTES:
            raise fusepy.FuseOSError(self._errors["read"])
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        if "write" in self._errors and offset + len(data) > GOOD_BYTES:
            raise fusepy.FuseOSError(self._errors["write"])
        return os.pwrite(fh, data, offset)

    def truncate(self, path, length, fh=None):
        os.truncate(path, length)

    def flush(self, path, fh):
        self._end("flush", path)

    def fsync(self, path, datasync, fh):
        self._end("fsync", path)

    def fsyncdir(self, path, datasync, fh):
        self._end("fsyncdir", path)

    def release(self, path, fh):
        os.close(fh)

    def rename(self, old, new):
        self._end("rename", new)
        os.rename(old, self._folder + new)

    def chmod(self, path, mode):
        os.chmod(path, mode)

    def chown(self, path, uid, gid):
        os.lchown(path, uid, gid)

    def utimens(self, path, times=None):
        os.utime(path, ns=times, follow_symlinks=False)

    def mkdir(self, path, mode):
        os.mkdir(path, mode)

    def rmdir(self, path):
        os.rmdir(path)

    def unlink(self, path):
        os.unlink(path)

    def symlink(self, name, target):
        os.symlink(target, name)

    def readlink(self, path):
        return os.readlink(path)


if __name__ == "__main__":
    wanted = dict(each.split("=") for each in sys.argv[3:])
    fusepy.FUSE(Mirror(sys.argv[1], {name: getattr(errno, error) for name, error in wanted.items()}), sys.argv[2], foreground=True,
                nothreads=True)
