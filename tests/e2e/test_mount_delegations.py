# SPDX-License-Identifier: Apache-2.0
"""wherry mount: files that nobody writes to are read without asking, and changes are seen at once all the same."""

import contextlib
import os
import resource
import subprocess

import pytest
from program import environment
from serving import HAS_FINE_TIMES, NO_PASSTHROUGH, Mount, Server, enter_namespace_with_delegations, mounts
from waiting import wait_until

READS = 10000


@pytest.fixture(scope="module", autouse=True)
def namespace(tmp_path_factory):
    enter_namespace_with_delegations(tmp_path_factory.mktemp("leases"))


def sleeps_of(call):
    """How often this process has waited for others during a call."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before


def warm(file, reads=50):
    for _ in range(reads):
        os.pread(file, 4096, 0)


def wait_until_delegated(file):
    wait_until(lambda: sleeps_of(lambda: warm(file, 200)) < 100, "a delegation")


@pytest.fixture
def opened():
    """open(2), closed at the end."""
    files = []

    def open_file(path, flags=os.O_RDONLY):
        files.append(os.open(path, flags))
        return files[-1]

    yield open_file
    for file in files:
        with contextlib.suppress(OSError):  # the mount has ended
            os.close(file)


@pytest.mark.parametrize("serve, asks", [([], False), (["--no-lend"], False), (["--no-delegations"], True)])
def test_reads_of_a_file_that_nobody_writes_to_ask_nobody(tmp_path, opened, serve, asks):
    with mounts(tmp_path, serve=[NO_PASSTHROUGH, *serve]) as (root, here):
        (root / "file").write_bytes(b"content")
        file = opened(here / "file")
        warm(file) if asks else wait_until_delegated(file)
        assert (sleeps_of(lambda: warm(file, READS)) > READS // 2) == asks
        assert (sleeps_of(lambda: [os.fstat(file) for _ in range(READS)]) > READS // 2) == asks


def test_a_file_that_is_open_for_writing_is_asked_for(tmp_path, opened):
    with mounts(tmp_path, serve=[NO_PASSTHROUGH]) as (root, here):
        (root / "file").write_bytes(b"content")
        opened(root / "file", os.O_WRONLY)
        file = opened(here / "file")
        warm(file)
        assert sleeps_of(lambda: warm(file, READS)) > READS // 2


@pytest.mark.skipif(not HAS_FINE_TIMES, reason="Linux before 6.13: a change within one tick is seen when the file is opened next")
@pytest.mark.parametrize("serve", [[], ["--no-lend"], ["--threads", "1"]])
@pytest.mark.parametrize("by", ["root", "mount0", "mount1"])
def test_changes_are_seen_at_once_by_those_who_read_without_asking(tmp_path, opened, by, serve):
    with mounts(tmp_path, 2, serve=[NO_PASSTHROUGH, *serve]) as (root, *heres):
        (root / "file").write_bytes(b"0" * 8)
        files = [opened(here / "file") for here in heres]
        for i in range(40):
            for file in files:
                wait_until_delegated(file) if i % 8 == 0 else warm(file)
            content = b"%08d" % i
            path = tmp_path / by / "file"
            if i % 3 == 0:  # the size changes
                os.truncate(path, 8 + i)
            else:
                writer = os.open(path, os.O_WRONLY)
                os.pwrite(writer, content, 0)
                os.close(writer)
            for file in files:
                if i % 3 == 0:
                    assert os.fstat(file).st_size == 8 + i
                    assert os.pread(file, 100, 8) == bytes(i)
                else:
                    assert os.pread(file, 8, 0) == content, i


def test_a_replaced_file_is_not_the_one_that_is_open(tmp_path, opened):
    with mounts(tmp_path, serve=[NO_PASSTHROUGH]) as (root, here):
        (root / "file").write_bytes(b"old")
        file = opened(here / "file")
        warm(file)
        (root / "new").write_bytes(b"newer")
        os.rename(root / "new", root / "file")
        assert (here / "file").read_bytes() == b"newer"
        assert os.pread(file, 100, 0) == b"old"
        warm(file)
        assert os.fstat(file).st_size == 3


def test_a_card_that_is_stopped_holds_nobody_up(tmp_path, opened):
    with Server(tmp_path, NO_PASSTHROUGH) as server:
        (tmp_path / "file").write_bytes(b"old")
        mount = Mount(server, tmp_path / "mount")
        with mount as here:
            file = opened(here / "file")
            for i in range(3):
                wait_until_delegated(file)
                with mount.stopped_daemon():
                    (tmp_path / "file").write_bytes(b"%03d" % i)
                assert os.pread(file, 100, 0) == b"%03d" % i


def test_a_server_that_is_started_again_delegates_again(tmp_path, opened):
    with Server(tmp_path, NO_PASSTHROUGH) as server, Mount(server, tmp_path / "mount") as here:
        (tmp_path / "file").write_bytes(b"old")
        file = opened(here / "file")
        warm(file)
        server.kill()
        (tmp_path / "file").write_bytes(b"new")
        server.start()
        wait_until(lambda: os.pread(file, 100, 0) == b"new", "what was written while there was no server")
        wait_until_delegated(file)
        (tmp_path / "file").write_bytes(b"newest")
        assert os.pread(file, 100, 0) == b"newest"


def test_programs_that_open_a_file_in_many_ways_read_what_was_written_last(tmp_path, opened):
    script = """
        cat file > /dev/null; for i in $(seq 40); do cat file; done | sort -u
        echo second >> file; for i in $(seq 40); do cat file; done | sort -u
        sed -i s/second/third/ file; cat file; truncate -s 2 file; cat file; wc -c < file
        dd if=/dev/zero of=file bs=1 count=3 conv=notrunc 2>/dev/null; wc -c < file; seq 9 > other; cp other file; cmp other file
    """
    with mounts(tmp_path, serve=[NO_PASSTHROUGH]) as (root, here):
        results = []
        for folder in (root, here):
            (root / "file").write_bytes(b"first\n")
            file = opened(here / "file")
            warm(file)
            results.append(subprocess.run(["bash", "-c", script], cwd=folder, env=environment(LC_ALL="C"), capture_output=True, text=True, timeout=250))
        assert results[0].returncode == 0
        assert [(one.returncode, one.stdout, one.stderr) for one in results] == [(0, results[0].stdout, "")] * 2


def test_a_mount_that_opens_files_itself_waits_for_delegations_of_others(tmp_path, opened):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(b"00000000")
    with Server(tmp_path / "root") as server, Mount(server, tmp_path / "here", NO_PASSTHROUGH) as here, Mount(server, tmp_path / "there") as there:
        file = opened(here / "file")
        for i in range(1, 20):
            wait_until_delegated(file)
            content = b"%08d" % i
            if i % 2:
                (there / "file").write_bytes(content)
            else:
                with open(there / "file", "r+b") as writer:
                    writer.write(content)
            assert os.pread(file, 8, 0) == content
