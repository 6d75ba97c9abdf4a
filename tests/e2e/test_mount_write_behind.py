# SPDX-License-Identifier: Apache-2.0
"""wherry mount: writes that are acknowledged before the server has them. Nobody sees the difference."""

import fcntl
import mmap
import os
import random
import subprocess
import threading
import time

import pytest
from keeping import BLOCK, NO_LEND, append_until_kept, opened, served, stopped, write_until_kept
from program import PROGRAM, environment
from serving import NO_PASSTHROUGH, enter_mount_namespace, mounts, need_leases


@pytest.fixture(scope="module", autouse=True)
def namespace(tmp_path_factory):
    enter_mount_namespace()
    need_leases(tmp_path_factory.mktemp("leases"))


def test_a_write_returns_without_the_server(tmp_path):
    with served(tmp_path) as (server, _, root, here):
        file = opened(here / "file")
        content = write_until_kept(file, root / "file")
        with stopped(server.process):
            for _ in range(100):
                content += b"x" * BLOCK
                assert os.pwrite(file, b"x" * BLOCK, len(content) - BLOCK) == BLOCK
        os.close(file)
        assert (root / "file").read_bytes() == content


APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND


def test_an_append_returns_without_the_server(tmp_path):
    with served(tmp_path) as (server, _, root, here):
        (root / "file").write_bytes(b"there before")
        file = opened(here / "file", APPEND)
        content = b"there before" + append_until_kept(file, root / "file")
        with stopped(server.process):
            for i in range(100):
                os.lseek(file, 0, os.SEEK_SET)  # says nothing about where it goes
                assert os.write(file, b"%08d" % i) == 8
                content += b"%08d" % i
        assert os.fstat(file).st_size == len(content)
        assert os.pread(file, 1 << 20, 0) == content == (root / "file").read_bytes()
        os.ftruncate(file, 5)
        assert os.pread(file, 1 << 20, 0) == b"there"
        content = content[:5] + append_until_kept(file, root / "file")
        fcntl.fcntl(file, fcntl.F_SETFL, 0)
        os.pwrite(file, b"T", 0)
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
        content = b"T" + content[1:] + append_until_kept(file, root / "file")
        os.write(file, b"z" * 100_000)
        os.write(file, b"end")
        os.close(file)
        assert (root / "file").read_bytes() == content + b"z" * 100_000 + b"end"


def test_appends_of_a_card_and_the_host_are_whole_and_in_their_order(tmp_path):
    rounds = 40
    with served(tmp_path, mount=["--write-buffer", "512K"]) as (_, _, root, here):
        file = opened(here / "file", APPEND)
        lengths = [10, 100, 3000, 20_000, 32_768, 40_000]
        done = threading.Event()

        def append_on_the_host():
            for i in range(rounds):
                with open(root / "file", "ab", buffering=0) as there:
                    there.write(b"h%08d" % i + b"." * 90 + b"\n")
                time.sleep(0.02)  # the card has the file to itself again
            done.set()
        host = threading.Thread(target=append_on_the_host)
        host.start()
        count = 0
        while count < 2000 or not done.is_set():
            line = b"c%08d" % count + b"." * lengths[count % 7 % len(lengths)] + b"\n"
            assert os.write(file, line) == len(line)
            count += 1
        host.join()
        os.close(file)
        lines = (root / "file").read_bytes().splitlines()
        by_card = [line for line in lines if line.startswith(b"c")]
        by_host = [line for line in lines if line.startswith(b"h")]
        assert len(by_card) + len(by_host) == len(lines)
        assert by_card == [b"c%08d" % i + b"." * lengths[i % 7 % len(lengths)] for i in range(count)]
        assert by_host == [b"h%08d" % i + b"." * 90 for i in range(rounds)]


def test_files_that_may_only_be_appended_to(tmp_path):
    with served(tmp_path) as (_, _, root, here):
        (root / "file").touch()
        if subprocess.run(["chattr", "+a", root / "file"], capture_output=True).returncode != 0:
            pytest.skip("chattr +a is refused here")
        try:
            file = os.open(here / "file", os.O_WRONLY | os.O_APPEND)
            for i in range(100):
                os.write(file, b"%08d" % i)
                assert os.stat(root / "file").st_size == 8 * (i + 1)
            os.close(file)
        finally:
            subprocess.run(["chattr", "-a", root / "file"], check=True)


def test_no_memory_no_wait(tmp_path):
    with served(tmp_path, mount=["--write-buffer", "0"]) as (_, _, root, here):
        file = opened(here / "file")
        content = b""
        for i in range(50):
            content += b"%08d" % i
            os.write(file, content[-8:])
            assert (root / "file").read_bytes() == content
        os.close(file)


def test_memory_that_is_no_size_is_refused(tmp_path):
    run = subprocess.run([PROGRAM, "mount", "wherry://0:7000", tmp_path, "--write-buffer", "much"], capture_output=True, text=True)
    assert run.returncode == 2 and "much" in run.stderr


@pytest.mark.parametrize("flags", [os.O_APPEND | os.O_SYNC, os.O_SYNC, os.O_DSYNC])
def test_what_is_to_be_there_at_once_is(tmp_path, flags):
    with served(tmp_path) as (_, _, root, here):
        file = opened(here / "file", os.O_WRONLY | os.O_CREAT | flags)
        for i in range(50):
            os.write(file, b"%08d" % i)
            assert os.stat(root / "file").st_size == 8 * (i + 1)
        os.close(file)


def test_the_same_mount_sees_what_was_written_in_every_way(tmp_path):
    def size_listed(file, here):
        return next(entry for entry in os.scandir(here) if entry.name == "file").stat().st_size

    def size_found(file, here):
        return int(subprocess.check_output(["find", here, "-name", "file", "-printf", "%s"]))

    def size_mapped(file, here):
        with mmap.mmap(file, 0, prot=mmap.PROT_READ) as mapped:
            return len(mapped[:].rstrip(b"\0"))

    def size_copied(file, here):
        other = opened(here / "other", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.lseek(file, 0, os.SEEK_SET)
        copied = os.copy_file_range(file, other, 1 << 20)
        os.close(other)
        return copied

    def size_locked(file, here):  # nothing is kept while the file has an owner of locks
        fcntl.lockf(file, fcntl.LOCK_EX)
        return os.stat(tmp_path / "root/file").st_size

    def size_linked(file, here):
        os.link(here / "file", here / "link")
        size = os.stat(here / "link").st_size
        os.unlink(here / "link")
        return size

    ways = [
        lambda file, here: os.fstat(file).st_size,
        lambda file, here: os.stat(here / "file").st_size,
        size_listed, size_found, size_mapped, size_copied,
        lambda file, here: len(os.pread(file, 1 << 20, 0)),
        lambda file, here: len((here / "file").read_bytes()),
        lambda file, here: os.lseek(file, 0, os.SEEK_END),
        lambda file, here: os.lseek(file, 0, os.SEEK_HOLE),
        size_locked,
        lambda file, here: os.fsync(file) or os.stat(tmp_path / "root/file").st_size,
        lambda file, here: os.close(os.dup(file)) or os.stat(tmp_path / "root/file").st_size,
        lambda file, here: os.utime(file) or os.stat(tmp_path / "root/file").st_size,
        lambda file, here: os.fchmod(file, 0o600) or os.stat(tmp_path / "root/file").st_size,
        size_linked,
    ]
    with served(tmp_path) as (_, _, root, here):
        for way in ways:
            file = opened(here / "file", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            end = 0
            for _ in range(1 if way == size_locked else 3):
                end += len(write_until_kept(file, root / "file", end))
                assert way(file, here) == end
            os.close(file)
            os.unlink(here / "file")


def test_changes_by_other_calls_come_in_their_order(tmp_path):
    with served(tmp_path) as (_, _, root, here):
        file = opened(here / "file")
        content = write_until_kept(file, root / "file")
        os.ftruncate(file, 50)
        more = write_until_kept(file, root / "file", 50)
        end = 50 + len(more) + 3000
        os.posix_fallocate(file, 0, end)
        assert os.fstat(file).st_size == end
        last = write_until_kept(file, root / "file", end)
        os.utime(file, (5, 6))
        os.close(file)
        assert os.stat(here / "file").st_mtime == 6
        found = (root / "file").read_bytes()
        assert found == content[:50] + more + bytes(3000) + last
        file = opened(here / "file", os.O_RDWR | os.O_TRUNC)
        content = write_until_kept(file, root / "file")
        os.rename(here / "file", here / "renamed")
        os.pwrite(file, b"after", 0)
        os.unlink(here / "renamed")
        os.pwrite(file, b"gone", 0)
        assert os.pread(file, 5, 0) == b"goner"
        assert os.pread(file, 1 << 20, 5) == content[5:]
        os.close(file)


@pytest.mark.parametrize("threads", ["1", "4"])
def test_whoever_opens_the_file_sees_what_was_written(tmp_path, threads):
    with mounts(tmp_path, 2, serve=[NO_LEND, NO_PASSTHROUGH, "--threads", threads]) as (root, here, there):
        for place in (root, there, here):
            file = opened(here / "file", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            content = write_until_kept(file, root / "file")
            other = opened(place / "file", os.O_RDWR)
            assert os.pread(other, 1 << 20, 0) == content, place
            # Both have it now.
            for i in range(30):
                by, seen = (file, other) if i % 2 else (other, file)
                content += b"%08d" % i
                os.pwrite(by, content[-8:], len(content) - 8)
                assert os.fstat(seen).st_size == len(content)
                assert os.pread(seen, 8, len(content) - 8) == content[-8:]
            os.ftruncate(other, 5)
            assert os.fstat(file).st_size == 5
            os.close(other)
            assert write_until_kept(file, root / "file", 5) == os.pread(file, 1 << 20, 5)
            os.close(file)


def test_a_random_walk_of_two_cards_and_the_host(tmp_path):
    seed = int(os.environ.get("WHERRY_TEST_SEED", random.randrange(1 << 32)))
    print("WHERRY_TEST_SEED =", seed)
    chance = random.Random(seed)
    model = bytearray()
    with mounts(tmp_path, 2, serve=[NO_LEND, NO_PASSTHROUGH]) as places:
        files = {}
        for step in range(1500):
            place = chance.choice(places)
            if place not in files or chance.random() < 0.03:
                if place in files:
                    os.close(files.pop(place))
                if chance.random() < 0.5:  # alone
                    for file in files.values():
                        os.close(file)
                    files.clear()
                files[place] = opened(place / "file")
            file = files[place]
            for _ in range(chance.choice([1, 1, 20])):
                what = chance.choice(["write"] * 6 + ["extend"] * 3 + ["read", "size", "cut", "sync", "append"])
                offset, length = chance.randrange(200_000), chance.choice([1, 100, 4096, 5000, 70_000])
                data = chance.randbytes(length)
                if what in ("write", "extend"):
                    offset = len(model) if what == "extend" and len(model) < 400_000 else offset
                    model.extend(bytes(max(0, offset + length - len(model))))
                    model[offset:offset + length] = data
                    assert os.pwrite(file, data, offset) == length
                elif what == "read":
                    assert os.pread(file, length, offset) == model[offset:offset + length], (seed, step)
                elif what == "size":
                    assert os.fstat(file).st_size == len(model), (seed, step)
                    assert os.stat(place / "file").st_size == len(model), (seed, step)
                elif what == "cut" and chance.random() < 0.3:
                    os.ftruncate(file, offset)
                    model = model[:offset] + bytes(max(0, offset - len(model)))
                elif what == "sync":
                    os.fsync(file)
                elif what == "append" and len(model) < 400_000:
                    with open(place / "file", "ab") as appended:
                        appended.write(data)
                    model += data
        for place in places:
            assert (place / "file").read_bytes() == model, seed
        for file in files.values():
            os.close(file)


def test_many_files_and_little_memory(tmp_path):
    with served(tmp_path, mount=["--write-buffer", "512K"]) as (_, _, root, here):
        def fill(name):
            with open(here / name, "wb", buffering=0) as file:
                for i in range(200):
                    file.write((b"%07d " % i) * chance[name])
        chance = {f"file {i}": 10 ** (i % 4 + 1) for i in range(8)}
        threads = [threading.Thread(target=fill, args=(name,)) for name in chance]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, times in chance.items():
            assert (root / name).read_bytes() == b"".join((b"%07d " % i) * times for i in range(200))


def test_programs_behave_as_on_the_host(tmp_path):
    script = """
        for i in $(seq 300); do echo line $i; done > file; wc -c < file; md5sum < file
        python3 -c "import os; f = open('table', 'wb', 0); [(f.seek(i * 37 % 5000), f.write(b'%d' % i)) for i in range(900)]; print(os.fstat(f.fileno()).st_size)"
        md5sum < table; dd if=/dev/zero of=zeros bs=700 count=500 2>/dev/null; stat -c %s zeros; cp zeros copy; cmp zeros copy
        tar cf all.tar file table zeros; mkdir out; tar xf all.tar -C out; for f in file table zeros; do cmp $f out/$f; done
        stat -c '%a %s' out/*; sort -r file > sorted; tail -n 1 sorted; rm -r out; ls
    """
    with mounts(tmp_path, serve=[NO_LEND, NO_PASSTHROUGH]) as (_, here):
        (tmp_path / "beside").mkdir()
        results = [subprocess.run(["bash", "-c", script], cwd=folder, env=environment(LC_ALL="C"), capture_output=True, text=True, timeout=250)
                   for folder in (tmp_path / "beside", here)]
        assert [(one.returncode, one.stdout, one.stderr) for one in results] == [(0, results[0].stdout, "")] * 2
