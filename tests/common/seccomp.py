# SPDX-License-Identifier: Apache-2.0
"""Seccomp filters: system calls that fail for this process and what it executes."""

import ctypes
import errno
import os
import platform
import struct

LOAD, EQUAL, AT_LEAST, BITS, GIVE = 0x20, 0x15, 0x35, 0x45, 0x06  # as in linux/filter.h
ALLOW, FAIL = 0x7FFF0000, 0x00050000
NUMBER, FIRST_ARGUMENT = 0, 16  # in struct seccomp_data


def call_number(x86_64, aarch64):
    return {"x86_64": x86_64, "aarch64": aarch64}[platform.machine()]


def install(program):
    """`program`: instructions (code, jump if true, jump if false, constant)."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    described = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, described, 0, 0) == 0, os.strerror(ctypes.get_errno())


def fail_writes_from(offset):
    """pwritev at this offset or behind it fails with EIO, as on a disk with a bad part."""
    fourth = FIRST_ARGUMENT + 3 * 8
    install([
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 0, 3, call_number(296, 70)),
        (LOAD, 0, 0, fourth),
        (AT_LEAST, 0, 1, offset),
        (GIVE, 0, 0, FAIL | errno.EIO),
        (GIVE, 0, 0, ALLOW),
    ])
