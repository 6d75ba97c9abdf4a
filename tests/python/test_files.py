# SPDX-License-Identifier: Apache-2.0
"""wherry.files: files of this machine and of a host."""

import errno
import os

import numpy
import pytest
import wherry
import wherry.files
from peers import PROGRAM


def test_a_file_of_this_machine(tmp_path):
    name = str(tmp_path / "file")
    with wherry.files.open(name, os.O_RDWR | os.O_CREAT) as file:
        assert file.pwrite(b"hello world", 0) == 11
        assert file.pread(5, 6) == b"world" and file.pread(100, 6) == b"world" and file.pread(5, 100) == b""
        place = numpy.zeros(5, "u1")
        assert file.pread_into(place, 0) == 5 and bytes(place) == b"hello"
        file.set_size(5)
        file.sync()
        assert file.size == 5
        view = file.view(1, 3)
        assert bytes(view) in (b"ell", b"")
    assert bytes(view) in (b"ell", b"")  # it keeps the file
    assert file.closed
    with pytest.raises(wherry.Error) as caught:
        file.pread(1, 0)
    assert caught.value.errno == errno.EBADF
    with wherry.files.open(name, os.O_WRONLY | os.O_APPEND) as file:
        assert file.append(b"!") == 1
    assert (tmp_path / "file").read_bytes() == b"hello!"


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        wherry.files.open(str(tmp_path / "none"))
    assert isinstance(caught.value, wherry.Error) and caught.value.errno == errno.ENOENT
    with pytest.raises(ValueError, match="a path is"):
        wherry.files.open("/", path="fast")


def test_a_file_of_a_host(tmp_path, peers):
    (tmp_path / "events").write_bytes(b"on the host")
    peers.start(PROGRAM, "serve", "--root", tmp_path, "--listen", "wherry://0:2000", node=0)
    with wherry.files.open("wherry://0:2000/events") as file:
        assert file.pread(100, 3) == b"the host"
