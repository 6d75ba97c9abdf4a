# SPDX-License-Identifier: Apache-2.0
"""wherry mount: extended attributes, beside the file system of this machine."""

import ctypes
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from errors_of_calls import call
from program import environment
from serving import SERVERS, Mount, Server, enter_mount_namespace, expect_same_as_natively, mounts
from waiting import WATCHDOG


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


@pytest.fixture(autouse=True)
def a_file_system_with_attributes(tmp_path):
    try:
        os.setxattr(tmp_path, "user.probe", b"")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")


def get_sized(path, name, size):
    """getxattr, or without a name listxattr, into a buffer of that size: the length and the buffer, or the error's name."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.getxattr.restype = libc.listxattr.restype = ctypes.c_ssize_t
    buffer = ctypes.create_string_buffer(max(size, 1))
    arguments = (os.fsencode(path), name, buffer, ctypes.c_size_t(size)) if name else (os.fsencode(path), buffer, ctypes.c_size_t(size))
    got = (libc.getxattr if name else libc.listxattr)(*arguments)
    return errno.errorcode[ctypes.get_errno()] if got < 0 else (got, buffer.raw[:got if size else 0])


def results(folder):
    at = folder.joinpath
    at("file").write_text("text")
    at("directory").mkdir()
    at("link").symlink_to("file")
    at("dangling").symlink_to("nowhere")
    for name in ("file", "directory", "link"):
        path = at(name)
        yield name, "set", [call(os.setxattr, path, attribute, value, flags) for attribute, value, flags in (
            ("user.one", b"1", 0), ("user.one", b"first", os.XATTR_CREATE), ("user.one", b"first", os.XATTR_REPLACE), ("user.none", b"", os.XATTR_REPLACE),
            ("user.empty", b"", os.XATTR_CREATE), ("user.both", b"", os.XATTR_CREATE | os.XATTR_REPLACE), ("user.flag", b"", 4), ("user.binary", bytes(range(256)), 0),
            ("user.", b"x", 0), ("none.x", b"x", 0), ("plain", b"x", 0), ("user." + "n" * 250, b"long", 0), ("user." + "n" * 251, b"long", 0),
            ("user.too_long", b"v" * 65536, 0), ("user.far_too_long", b"v" * 65537, 0))]
        yield name, "get", [call(os.getxattr, path, attribute) for attribute in ("user.one", "user.empty", "user.binary", "user.none", "user.", "none.x", "user." + "n" * 250)]
        yield name, "list", sorted(call(os.listxattr, path))
        yield name, "sized", [get_sized(path, attribute, size) for attribute in (b"user.one", b"user.binary", b"user.empty", b"user.none") for size in (0, 1, 5, 256, 65536)]
        yield name, "list sized", [get_sized(path, None, size)[0] for size in (0, 1, 5, 65536)]
        yield name, "remove", [call(os.removexattr, path, attribute) for attribute in ("user.one", "user.one", "user.", "none.x", "user.empty")]
        yield name, "left", sorted(call(os.listxattr, path))
    for name in ("link", "dangling"):
        path = at(name)
        yield name, [call(os.setxattr, path, "user.x", b"", follow_symlinks=False), call(os.getxattr, path, "user.x", follow_symlinks=False),
                     call(os.listxattr, path, follow_symlinks=False), call(os.removexattr, path, "user.x", follow_symlinks=False)]
    yield "nowhere", [call(os.setxattr, at("none"), "user.x", b""), call(os.getxattr, at("dangling"), "user.x"), call(os.listxattr, at("none"))]
    descriptor = os.open(at("file"), os.O_RDWR)
    reader = os.open(at("file"), os.O_RDONLY)
    os.unlink(at("file"))
    yield "unlinked", [call(os.setxattr, descriptor, "user.open", b"open"), call(os.setxattr, reader, "user.reader", b""), call(os.getxattr, reader, "user.open"),
                       sorted(os.listxattr(reader)), call(os.removexattr, reader, "user.open"), call(os.getxattr, descriptor, "user.open")]
    os.close(descriptor)
    os.close(reader)


@SERVERS
def test_extended_attributes_are_those_of_a_native_file_system(tmp_path, serve):
    expect_same_as_natively(tmp_path, serve, results)


def test_extended_attributes_are_the_host_s_and_another_mount_sees_them_at_once(tmp_path):
    with mounts(tmp_path, 2) as (root, one, other):
        (one / "file").touch()
        for i in range(50):
            os.setxattr(one / "file", "user.count", str(i).encode())
            assert os.getxattr(root / "file", "user.count") == os.getxattr(other / "file", "user.count") == str(i).encode()
        os.setxattr(root / "file", "user.host", b"host")
        assert sorted(os.listxattr(one / "file")) == ["user.count", "user.host"]
        os.removexattr(other / "file", "user.count")
        assert os.listxattr(root / "file") == ["user.host"]


def test_attributes_of_other_namespaces_are_refused_and_not_listed(tmp_path):
    with mounts(tmp_path) as (root, here):
        (root / "file").touch()
        os.setxattr(root / "file", "user.seen", b"")
        call(os.setxattr, root / "file", "trusted.x", b"")  # root may
        call(os.setxattr, root / "file", "security.x", b"")
        assert os.listxattr(here / "file") == ["user.seen"]
        for name in ("security.x", "system.x", "trusted.x"):
            assert [call(os.setxattr, here / "file", name, b"x"), call(os.getxattr, here / "file", name), call(os.removexattr, here / "file", name)] == [
                "ENOTSUP"] * 3, name
        for name in ("security.capability", "security.selinux", "system.posix_acl_access", "system.posix_acl_default"):
            assert call(os.getxattr, here / "file", name) == "ENOTSUP", name


def test_what_the_kernel_asks_for_before_writes_is_answered_without_the_server(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_text("text")
    asks = "import os, sys\ntry: os.getxattr(int(sys.argv[1]), 'security.capability')\nexcept OSError as error: print(error.strerror)"
    with Server(tmp_path / "root") as server, Mount(server, tmp_path / "mount") as here, open(here / "file", "r+") as file:
        server.process.send_signal(signal.SIGSTOP)
        try:
            with subprocess.Popen([sys.executable, "-c", asks, str(file.fileno())], pass_fds=[file.fileno()], stdout=subprocess.PIPE, text=True,
                                  env=environment(LC_ALL="C")) as child:
                try:
                    assert child.communicate(timeout=WATCHDOG)[0] == "Operation not supported\n"
                finally:
                    server.process.send_signal(signal.SIGCONT)  # or the child cannot end
        finally:
            server.process.send_signal(signal.SIGCONT)


def test_programs_that_keep_attributes_keep_them(tmp_path):
    script = "cp -a from copy && mv copy moved && tar --xattrs -C from -cf tar . && mkdir unpacked && tar --xattrs -C unpacked -xf tar && cp from/file plain"

    def copied(folder):
        (folder / "from").mkdir(parents=True)
        (folder / "from" / "file").write_text("text")
        os.setxattr(folder / "from" / "file", "user.kept", b"\0value")
        os.setxattr(folder / "from", "user.directory", b"")
        result = subprocess.run(["bash", "-c", script], cwd=folder, env=environment(LC_ALL="C"), capture_output=True, text=True)
        names = ("moved", "moved/file", "unpacked/file", "plain")
        return result.returncode, result.stderr, [{key: os.getxattr(folder / name, key) for key in os.listxattr(folder / name)} for name in names]

    natively = copied(tmp_path / "native")
    assert natively[0] == 0, natively
    with mounts(tmp_path) as (_, here):
        assert copied(here / "folder") == natively


def test_a_mount_for_reading_only_changes_no_attributes(tmp_path):
    with mounts(tmp_path, serve=["--read-only"]) as (root, here):
        (root / "file").touch()
        os.setxattr(root / "file", "user.x", b"x")
        assert os.getxattr(here / "file", "user.x") == b"x" and os.listxattr(here / "file") == ["user.x"]
        assert [call(os.setxattr, here / "file", "user.x", b"y"), call(os.removexattr, here / "file", "user.x")] == ["EROFS"] * 2


def test_a_write_keeps_attributes_and_drops_a_set_user_id_bit(open_folder):
    """The kernel asks for an attribute of its own before each write."""
    with mounts(Path(open_folder), mount=["--allow-other"]) as (root, here):
        (root / "file").write_text("old")
        (root / "file").chmod(0o4777)
        os.setxattr(here / "file", "user.x", b"x")
        child = os.fork()
        if child == 0:
            try:
                os.chdir(here)
                os.setresuid(65534, 65534, 65534)
                file = os.open("file", os.O_WRONLY)
                os._exit(0 if os.write(file, b"new") == 3 else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert (root / "file").read_text() == "new" and oct((root / "file").stat().st_mode & 0o7777) == "0o777"
        assert os.listxattr(root / "file") == ["user.x"]
