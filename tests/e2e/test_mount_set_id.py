# SPDX-License-Identifier: Apache-2.0
"""wherry mount: set-user-ID and set-group-ID bits go with a change of the file, as they do natively."""

import json
import os
import re
import subprocess
import sys

import pytest
from keeping import NO_LEND, Program, write_until_kept
from serving import NO_PASSTHROUGH, SERVERS, enter_mount_namespace, mounts, need_leases

# Since Linux 6.3 a change by a user outside the group removes the set-group-ID bit even if the group may not execute the
# file. These kernels also remove the bits at an allocation, on every file system.
CLEARS_FOR_OUTSIDERS = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 3)

# Prints the mode after each change, by the user with this number.
SCRIPT = """
import ctypes, json, mmap, os, sys
user, group, other_group, all_modes = map(int, sys.argv[1:])
MODES = (0o6777, 0o2767, 0o4666, 0o1777) if all_modes else (0o6777, 0o4666, 0o1777)

def mapped(path):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 4096) as memory:
        memory[0] = 1
        memory.flush()

def with_file(flags, call):
    def change(path):
        file = os.open(path, flags)
        call(file)
        os.close(file)
    return change

def copied(file):
    other = os.open("other", os.O_RDONLY)
    os.copy_file_range(other, file, 100)
    os.close(other)

def punched(file):
    assert ctypes.CDLL(None).fallocate(file, 3, ctypes.c_long(0), ctypes.c_long(4096)) == 0

CHANGES = {
    "read": with_file(os.O_RDONLY, lambda file: os.read(file, 10)),
    "open": with_file(os.O_RDWR, lambda file: None),
    "write": with_file(os.O_WRONLY, lambda file: os.write(file, b"x")),
    "long write": with_file(os.O_WRONLY, lambda file: os.write(file, b"x" * 300000)),
    "append": with_file(os.O_WRONLY | os.O_APPEND, lambda file: os.write(file, b"x")),
    "empty write": with_file(os.O_WRONLY, lambda file: os.write(file, b"")),
    "truncate": lambda path: os.truncate(path, 10),
    "ftruncate": with_file(os.O_WRONLY, lambda file: os.ftruncate(file, 10)),
    "O_TRUNC": with_file(os.O_WRONLY | os.O_TRUNC, lambda file: None),
    "O_CREAT O_TRUNC": with_file(os.O_WRONLY | os.O_CREAT | os.O_TRUNC, lambda file: None),
    **({"allocate": with_file(os.O_WRONLY, lambda file: os.posix_fallocate(file, 0, 100000)), "punch": with_file(os.O_WRONLY, punched)} if all_modes else {}),
    "copy": with_file(os.O_WRONLY, copied),
    "map": mapped,
    "utime": lambda path: os.utime(path),
}

def modes():
    for mode in MODES:
        for name, change in CHANGES.items():
            path = f"{name} {mode:o}"
            with open(path, "wb") as file:
                file.write(bytes(8192))
            os.chmod(path, mode)
    os.setgroups([other_group])
    os.setgid(group)
    os.setuid(user)
    for mode in MODES:
        for name, change in CHANGES.items():
            path = f"{name} {mode:o}"
            try:
                change(path)
                for _ in range(2):
                    after = oct(os.stat(path).st_mode)
            except OSError as error:
                after = error.strerror
            yield name, mode, after

open("other", "wb").write(b"c" * 1000)
os.chmod(".", 0o777)
print(json.dumps(list(modes())))
"""


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


def modes_after_changes(folder, *who):
    words = map(str, (*who, int(CLEARS_FOR_OUTSIDERS)))
    result = subprocess.run([sys.executable, "-c", SCRIPT, *words], cwd=folder, capture_output=True, text=True, timeout=250)
    assert result.returncode == 0, result.stderr
    assert "Permission denied" not in result.stdout
    return json.loads(result.stdout)


@SERVERS
@pytest.mark.parametrize("user, group, other_group", [(0, 0, 0), (65534, 65534, 65534), (65534, 0, 65534), (65534, 65534, 0)])
def test_bits_are_those_that_a_native_change_leaves(tmp_path, serve, user, group, other_group):
    (tmp_path / "native").mkdir()
    natively = modes_after_changes(tmp_path / "native", user, group, other_group)
    with mounts(tmp_path, serve=serve, mount=["--allow-other"]) as (_, here):
        seen = modes_after_changes(here, user, group, other_group)
    assert [one for one in zip(natively, seen) if one[0] != one[1]] == []


def bits_after_a_kept_write(path, there, mode, owner, user, group, other_group):
    """The host sets the bits of a file that a program has open, and then that writes. Natively `path` is `there`."""
    with Program() as program:
        file = program.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        os.chown(there, owner, 0)
        program.setgroups([other_group])
        program.setgid(group)
        program.setuid(user)
        if path != there:
            write_until_kept(file, there, by=program)
        os.chmod(there, mode)
        assert program.pwrite(file, b"x", 0) == 1
        assert program.fsync(file) is None
        after = os.stat(there).st_mode & 0o7777
        os.unlink(there)
        return oct(after)


@pytest.mark.parametrize("owner", [0, 65534])
@pytest.mark.parametrize("user, group, other_group", [(0, 0, 0), (65534, 65534, 65534), (65534, 0, 65534), (65534, 65534, 0)])
def test_a_kept_write_leaves_the_bits_that_a_native_one_leaves(tmp_path, owner, user, group, other_group):
    (tmp_path / "native").mkdir()
    need_leases(tmp_path / "native")
    native = tmp_path / "native" / "file"
    modes = (0o6777, 0o2767, 0o4666, 0o1777) if CLEARS_FOR_OUTSIDERS else (0o6777, 0o4666, 0o1777)
    who = owner, user, group, other_group
    with mounts(tmp_path, serve=[NO_LEND, NO_PASSTHROUGH], mount=["--allow-other"]) as (root, here):
        for mode in modes:
            natively = bits_after_a_kept_write(native, native, mode, *who)
            assert bits_after_a_kept_write(here / "file", root / "file", mode, *who) == natively, oct(mode)
