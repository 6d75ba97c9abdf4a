# SPDX-License-Identifier: Apache-2.0
"""wherry mount: a file that is opened again is still in the card's memory, and each open shows what the host has then."""

import ctypes
import itertools
import mmap
import os
import random
import subprocess
import threading

import pytest
from serving import NO_PASSTHROUGH, enter_namespace_with_delegations, mounts
from waiting import wait_until

PAGE = mmap.PAGESIZE
SIZE = 64 * PAGE
WITHOUT_PASSTHROUGH = pytest.mark.parametrize("serve", [[NO_PASSTHROUGH], [NO_PASSTHROUGH, "--no-lend"]],
                                              ids=["lent", "through the server"])


@pytest.fixture(scope="module", autouse=True)
def namespace(tmp_path_factory):
    enter_namespace_with_delegations(tmp_path_factory.mktemp("leases"))


def pages_in_memory(file):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    size = os.fstat(file).st_size
    place = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, file, ctypes.c_long(0)))
    found = (ctypes.c_ubyte * -(-size // PAGE))()
    assert libc.mincore(place, ctypes.c_size_t(size), found) == 0, os.strerror(ctypes.get_errno())
    assert libc.munmap(place, ctypes.c_size_t(size)) == 0
    return sum(page & 1 for page in found)


def pages_after_open(path):
    file = os.open(path, os.O_RDONLY)
    try:
        return pages_in_memory(file)
    finally:
        os.close(file)


def has(path, content):
    """Not compared by an assertion, which takes minutes to tell how long contents differ."""
    return path.read_bytes() == content


def read_until_kept(path):
    """Reads a file until an open finds it in memory: not if it was changed just before."""
    def reads():
        content = path.read_bytes()
        return pages_after_open(path) == -(-len(content) // PAGE)
    wait_until(reads, "a file in memory when it is opened")


@WITHOUT_PASSTHROUGH
def test_a_file_that_is_opened_again_is_still_in_memory(tmp_path, serve):
    with mounts(tmp_path, serve=serve) as (root, here):
        (root / "file").write_bytes(os.urandom(SIZE))
        read_until_kept(here / "file")
        for _ in range(5):
            assert pages_after_open(here / "file") == SIZE // PAGE
        # By another program and another name.
        os.link(root / "file", root / "link")
        read_until_kept(here / "link")
        subprocess.run(["cmp", here / "link", root / "file"], check=True)
        assert pages_after_open(here / "file") == SIZE // PAGE


def in_place(path, content):
    with open(path, "r+b", buffering=0) as file:
        assert file.write(content) == len(content)


def with_the_same_times(path, content):
    before = os.stat(path)
    in_place(path, content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(path, content):
    new = path.with_name("new")
    new.write_bytes(content)
    os.rename(new, path)


def truncated(path, content):
    path.write_bytes(content)


def by_copy(path, content):
    source = path.with_name("source")
    source.write_bytes(content)
    with open(source, "rb") as origin, open(path, "r+b") as target:
        assert os.copy_file_range(origin.fileno(), target.fileno(), SIZE) == SIZE


@WITHOUT_PASSTHROUGH
@pytest.mark.parametrize("change", [in_place, with_the_same_times, replaced, truncated, by_copy])
def test_an_open_shows_each_change_by_the_host(tmp_path, serve, change):
    with mounts(tmp_path, serve=serve) as (root, here):
        (root / "file").write_bytes(os.urandom(SIZE))
        for _ in range(5):
            read_until_kept(here / "file")
            content = os.urandom(SIZE)
            change(root / "file", content)
            assert has(here / "file", content) and has(here / "file", content)


@WITHOUT_PASSTHROUGH
def test_an_open_shows_each_change_by_a_mapping_of_the_host(tmp_path, serve):
    """The kernel changes the times of a file when a page is first changed by a mapping, and not again for some time."""
    with mounts(tmp_path, serve=serve) as (root, here):
        (root / "file").write_bytes(os.urandom(SIZE))
        read_until_kept(here / "file")
        with open(root / "file", "r+b") as file, mmap.mmap(file.fileno(), SIZE) as memory:
            file.close()
            for i in range(300):
                memory[5 * PAGE:5 * PAGE + 8] = i.to_bytes(8, "big")
                assert (here / "file").read_bytes()[5 * PAGE:5 * PAGE + 8] == i.to_bytes(8, "big")
        read_until_kept(here / "file")
        assert has(here / "file", (root / "file").read_bytes())


@WITHOUT_PASSTHROUGH
@pytest.mark.parametrize("opened", [0, 1], ids=["", "while it is open"])
def test_an_open_shows_changes_that_follow_each_other_at_once(tmp_path, serve, opened):
    """Changes within one tick of the kernel's clock may have the same time."""
    with mounts(tmp_path, serve=serve) as (root, here):
        (root / "file").write_bytes(os.urandom(SIZE))
        read_until_kept(here / "file")
        others = [os.open(here / "file", os.O_RDONLY) for _ in range(opened)]
        writer = os.open(root / "file", os.O_WRONLY)
        chance = random.Random(1)
        for i in range(2000):
            os.pwrite(writer, i.to_bytes(8, "big"), 8)
            if chance.random() < 0.1:
                os.close(writer)
                writer = os.open(root / "file", os.O_WRONLY)
            for other in others:
                os.pread(other, 16, 0)
            assert (here / "file").read_bytes()[8:16] == i.to_bytes(8, "big")
        for file in [writer, *others]:
            os.close(file)


@WITHOUT_PASSTHROUGH
def test_an_open_shows_changes_by_another_card_and_by_its_own(tmp_path, serve):
    with mounts(tmp_path, count=2, serve=serve) as (root, here, there):
        (root / "file").write_bytes(os.urandom(SIZE))
        for writer in (there, here, there, here):
            read_until_kept(here / "file")
            content = os.urandom(SIZE)
            in_place(writer / "file", content)
            assert has(here / "file", content) and has(root / "file", content)
            os.truncate(writer / "file", SIZE // 2)
            os.truncate(writer / "file", SIZE)
            assert has(here / "file", content[:SIZE // 2] + bytes(SIZE // 2))


@WITHOUT_PASSTHROUGH
def test_threads_that_open_a_file_at_once_see_what_was_there_when_they_began(tmp_path, serve):
    """One thread of the host counts up in the file; each open of a card shows at least the count from before the open."""
    count, ends = [0], []
    with mounts(tmp_path, serve=serve) as (root, here):
        (root / "file").write_bytes(bytes(SIZE))
        read_until_kept(here / "file")

        def reads():
            for _ in range(1500):
                least = count[0]
                with open(here / "file", "rb", buffering=0) as file:
                    found = int.from_bytes(file.read(8), "big")
                if found < least:
                    ends.append((found, least))

        readers = [threading.Thread(target=reads) for _ in range(3)]
        for reader in readers:
            reader.start()
        chance = random.Random(2)
        for i in itertools.count(1):
            in_place(root / "file", i.to_bytes(8, "big"))
            count[0] = i
            if chance.random() < 0.05:  # long enough for an open to find a stable file
                threading.Event().wait(0.03)
            if not any(reader.is_alive() for reader in readers):
                break
        assert not ends
