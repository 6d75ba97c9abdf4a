# SPDX-License-Identifier: Apache-2.0
"""What system calls on names and descriptors come to, in a folder: the same on every file system."""

import errno
import os


def call(function, *arguments, **options):
    """The error's name, or what the call returned."""
    try:
        return function(*arguments, **options)
    except OSError as error:
        return errno.errorcode[error.errno]


def _open(path, flags, mode=0o644):
    descriptor = call(os.open, path, flags, mode)
    if isinstance(descriptor, int):
        os.close(descriptor)
        return "opened"
    return descriptor


def _stat(path):
    found = call(os.lstat, path)
    return found if isinstance(found, str) else (oct(found.st_mode), found.st_nlink if os.path.isfile(path) else 0, found.st_size)


def _prepare(folder):
    for name in ("directory", "full", "other"):
        os.mkdir(folder / name)
    for name in ("file", "second", "full/file"):
        (folder / name).write_text("text")
    os.symlink("file", folder / "link")
    os.symlink("nowhere", folder / "broken")
    os.symlink("loop", folder / "loop")
    os.symlink("directory", folder / "to_directory")


def _names(folder):
    at = folder.joinpath
    long = "n" * 256
    yield "mkdir", [call(os.mkdir, at(name)) for name in ("file", "directory", "broken", "file/below", "none/below", long, "n" * 255)]
    yield "rmdir", [call(os.rmdir, at(name)) for name in ("file", "full", "none", "link", "to_directory", "file/below", "n" * 255)]
    yield "unlink", [call(os.unlink, at(name)) for name in ("none", "file/below", long, "loop/below")]
    yield "unlink of a directory", call(os.unlink, at("directory")) in ("EISDIR", "EPERM")
    yield "link", [call(os.link, at(one), at(two)) for one, two in (("file", "second"), ("none", "new"), ("file", "none/new"), ("file", "hard"))]
    yield "symlink", [call(os.symlink, target, at(name)) for target, name in (("x", "file"), ("x", "none/new"), ("t" * 4000, "far"))]
    yield "readlink", [call(os.readlink, at(name)) for name in ("link", "far", "file", "none", "directory")]
    yield "rename", [call(os.rename, at(one), at(two)) for one, two in (
        ("none", "new"), ("file", "directory"), ("directory", "file"), ("directory", "full"), ("directory", "directory/below"),
        ("full/file", "none/new"), ("file", "hard"), ("second", "renamed"), ("directory", "other"), ("link", "renamed"), (long, "new"))]
    yield "stat", {name: _stat(at(name)) for name in ("file", "hard", "renamed", "other", "directory", "link", "broken", "loop", "far", "none", "file/x")}
    yield "followed", [type(call(os.stat, at(name))).__name__ for name in ("renamed", "broken", "loop", "to_directory")]
    yield "list", sorted(os.listdir(folder))


def _opens(folder):
    at = folder.joinpath
    cases = [("file", os.O_WRONLY | os.O_CREAT | os.O_EXCL), ("none", os.O_RDONLY), ("directory2", os.O_WRONLY), ("directory2", os.O_RDONLY),
             ("directory2", os.O_RDONLY | os.O_CREAT), ("file", os.O_RDONLY | os.O_DIRECTORY), ("to", os.O_RDONLY | os.O_NOFOLLOW),
             ("to", os.O_WRONLY | os.O_CREAT | os.O_EXCL), ("loop", os.O_RDONLY), ("file/below", os.O_RDONLY), ("none/below", os.O_WRONLY | os.O_CREAT),
             ("dangling", os.O_WRONLY | os.O_CREAT), ("n" * 256, os.O_WRONLY | os.O_CREAT), ("file/", os.O_RDONLY)]
    os.mkdir(at("directory2"))
    os.symlink("file", at("to"))
    os.symlink("made", at("dangling"))
    yield "open", [_open(at(name), flags) for name, flags in cases]
    yield "made", os.path.exists(at("made"))
    yield "truncate", [call(os.truncate, at(name), size) for name, size in (("file", 100), ("directory2", 1), ("none", 1), ("file", -1), ("to", 7))]
    yield "chmod", [call(os.chmod, at(name), mode) for name, mode in (("file", 0o4711), ("directory2", 0o1777), ("none", 0o644), ("to", 0o600))]
    yield "chown", [call(os.chown, at(name), 1234, -1, follow_symlinks=follow) for name, follow in
                    (("file", True), ("to", False), ("none", True), ("directory2", True))]
    yield "owners", [(os.lstat(at(name)).st_uid, os.lstat(at(name)).st_gid) for name in ("file", "to", "directory2", "made")]
    yield "no set-user-ID bit", oct(os.stat(at("file")).st_mode)
    yield "utime", [call(os.utime, at(name), ns=(10**9 + 1, 2 * 10**9 + 3)) for name in ("file", "directory2", "none")]
    yield "times", [(os.stat(at(name)).st_atime_ns, os.stat(at(name)).st_mtime_ns) for name in ("file", "directory2")]
    yield "stat", {name: _stat(at(name)) for name in ("file", "directory2", "made")}


def _descriptors(folder):
    path = folder / "data"
    writer = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    reader = os.open(path, os.O_RDONLY)
    yield "wrong way", [call(os.read, writer, 1), call(os.write, reader, b"x"), call(os.ftruncate, reader, 1)]
    yield "far", [call(os.pwrite, writer, b"end", 1 << 33), os.fstat(reader).st_size, call(os.pread, reader, 4, (1 << 33) - 1)]
    yield "holes", [call(os.lseek, reader, 0, os.SEEK_HOLE), call(os.lseek, reader, 1 << 34, os.SEEK_DATA), call(os.lseek, reader, -1, os.SEEK_SET)]
    yield "truncated", [call(os.ftruncate, writer, 10), os.fstat(reader).st_size, call(os.pread, reader, 20, 5), call(os.ftruncate, writer, -1)]
    os.unlink(path)
    yield "owner of an unlinked file", [call(os.fchown, writer, -1, 4321), os.fstat(reader).st_gid]
    yield "unlinked", [os.fstat(reader).st_nlink, call(os.pwrite, writer, b"still", 0), call(os.pread, reader, 5, 0), _stat(path)]
    directory = os.open(folder, os.O_RDONLY)
    yield "directory", [call(os.read, directory, 1), call(os.fsync, directory), call(os.pread, directory, 1, 0)]
    for descriptor in (writer, reader, directory):
        yield "close", call(os.close, descriptor)


def results(folder):
    """A list of pairs, each of which names calls and what they came to."""
    _prepare(folder)
    return [*_names(folder), *_opens(folder), *_descriptors(folder)]
