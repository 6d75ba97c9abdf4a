# SPDX-License-Identifier: Apache-2.0
"""wherry mount: locks exclude programs of one mount, of another mount, and of the host."""

import contextlib
import errno
import os
import random
import signal
import sqlite3
import subprocess
import sys

import pytest
from locking import Locker, lockers
from serving import enter_mount_namespace, mounts
from waiting import WATCHDOG, wait_until

KINDS = ("posix", "ofd", "flock", "lockf")
PLACES = {"two mounts": (0, 1), "one mount": (0, 0), "a mount and the host": (0, -1), "the host and a mount": (-1, 0)}
kinds = pytest.mark.parametrize("kind", KINDS)
places = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two mounts, and last the directory that they show."""
    with mounts(tmp_path_factory.mktemp("locks"), 2) as (root, *directories):
        yield [*directories, root]


@pytest.fixture
def name(folders):
    path = folders[-1] / f"file{random.getrandbits(64):x}"
    path.write_bytes(b"0" * 100)
    return path.name


@places
@kinds
def test_a_lock_excludes_until_it_is_given_up(folders, name, place, kind):
    with lockers(*[folders[i] / name for i in place]) as (holder, other):
        assert holder.lock(kind, "file", "write") is None
        assert other.lock(kind, "file", "write") == "EAGAIN"
        assert holder.lock(kind, "file", "none") is None
        assert other.lock(kind, "file", "write") is None


@places
@kinds
def test_who_waits_gets_the_lock_when_it_is_given_up(folders, name, place, kind):
    with lockers(*[folders[i] / name for i in place]) as (holder, waiter):
        assert holder.lock(kind, "file", "write") is None
        waiter.begin("lock", kind, "file", "write", 0, 0, True).wait_until_it_waits()
        assert holder.lock(kind, "file", "none") is None
        assert waiter.result() is None
        assert holder.lock(kind, "file", "write") == "EAGAIN"


@places
def test_posix_locks_and_those_of_open_files_exclude_each_other_and_flock_neither(folders, name, place):
    with lockers(*[folders[i] / name for i in place]) as (one, other):
        assert one.lock("posix", "file", "write", 0, 10) is None
        assert other.lock("ofd", "file", "read", 9, 1) == "EAGAIN"
        assert other.lock("ofd", "file", "read", 10, 1) is None
        assert one.lock("lockf", "file", "write", 5, 10) == "EAGAIN"
        assert other.lock("flock", "file", "write") is None
        assert one.lock("flock", "file", "read") == "EAGAIN"


@places
@pytest.mark.parametrize("kind", ("posix", "ofd"))
def test_getlk_tells_what_is_in_the_way(folders, name, place, kind):
    with lockers(*[folders[i] / name for i in place]) as (holder, asking):
        assert holder.lock(kind, "file", "write", 10, 20) is None
        assert holder.lock(kind, "file", "read", 30, 0) is None
        assert asking.get(kind, "file", "write", 0, 15)[:3] == ["write", 10, 20]
        assert asking.get(kind, "file", "write", 35, 15)[:3] == ["read", 30, 0]
        assert asking.get(kind, "file", "read", 30, 0) == ["none"]
        assert asking.get(kind, "file", "write", 0, 10) == ["none"]
        assert holder.get(kind, "file", "write", 0, 0) == ["none"]


def test_getlk_names_the_process_if_it_is_of_this_mount(folders, name):
    with lockers(folders[0] / name, folders[0] / name, folders[1] / name) as (holder, near, far):
        assert holder.lock("posix", "file", "write") is None
        assert near.get("posix", "file", "write")[3] == holder.process.pid
        assert far.get("posix", "file", "write")[3] in (0, -1)


def test_a_process_has_its_posix_locks_by_whichever_descriptor(folders, name):
    """Also one that is open for reading only, which locks first."""
    with lockers(folders[0] / name, folders[1] / name) as (holder, other):
        assert holder.open("reader", str(folders[0] / name), os.O_RDONLY) is None
        assert holder.lock("posix", "reader", "read", 0, 10) is None
        assert other.lock("posix", "file", "write", 0, 10) == "EAGAIN"
        assert holder.lock("posix", "file", "write", 0, 20) is None
        assert other.lock("posix", "file", "read", 0, 10) == "EAGAIN"
        assert holder.in_thread("lock", "posix", "reader", "read", 0, 10) is None
        assert other.lock("posix", "file", "read", 0, 10) is None


def test_threads_have_the_posix_locks_of_their_process_and_exclude_each_other_by_open_files(folders, name):
    with lockers(folders[0] / name) as (process,):
        process.open("second", str(folders[0] / name))
        assert process.lock("posix", "file", "write", 0, 1) is None
        assert process.in_thread("lock", "posix", "second", "write", 0, 1) is None
        assert process.lock("ofd", "file", "write", 1, 1) is None
        assert process.in_thread("lock", "ofd", "second", "read", 1, 1) == "EAGAIN"
        assert process.lock("flock", "file", "write") is None
        assert process.in_thread("lock", "flock", "second", "read") == "EAGAIN"


def test_a_lock_is_upgraded_and_downgraded_where_others_allow_it(folders, name):
    for kind in ("posix", "ofd"):  # flock gives a lock up before it asks for another kind
        with lockers(folders[0] / name, folders[1] / name) as (one, other):
            assert one.lock(kind, "file", "read") is None
            assert other.lock(kind, "file", "read") is None
            assert one.lock(kind, "file", "write") == "EAGAIN"
            other.begin("lock", kind, "file", "write", 0, 0, True).wait_until_it_waits()
            assert one.lock(kind, "file", "none") is None
            assert other.result() is None
            one.begin("lock", kind, "file", "read", 0, 0, True).wait_until_it_waits()
            assert other.lock(kind, "file", "read") is None
            assert one.result() is None


def test_a_close_drops_the_posix_locks_of_the_process_and_not_those_of_its_other_open_files(folders, name):
    path = str(folders[0] / name)
    with lockers(path, folders[1] / name) as (holder, other):
        holder.open("second", path)
        holder.open("third", path, os.O_RDONLY)
        assert holder.lock("posix", "file", "write", 0, 1) is None
        assert holder.lock("ofd", "second", "write", 1, 1) is None
        assert holder.lock("flock", "second", "write") is None
        assert holder.close("third") is None
        assert other.lock("posix", "file", "write", 0, 1) is None
        assert other.lock("posix", "file", "write", 1, 1) == "EAGAIN"
        assert other.lock("flock", "file", "write") == "EAGAIN"


@pytest.mark.parametrize("kind", ("ofd", "flock"))
def test_locks_of_an_open_file_last_until_its_last_duplicate_is_closed(folders, name, kind):
    with lockers(folders[0] / name, folders[1] / name) as (holder, other):
        assert holder.lock(kind, "file", "write") is None
        holder.duplicate("file", "copy")
        holder.close("file")
        assert other.lock(kind, "file", "write") == "EAGAIN"
        holder.close("copy")
        wait_until(lambda: other.lock(kind, "file", "write") is None, "the end of a lock")


def test_a_child_has_the_locks_of_open_files_and_not_the_posix_ones(folders, name):
    with lockers(folders[0] / name) as (parent,):
        for kind, result in (("posix", "EAGAIN"), ("ofd", None), ("flock", None)):
            assert parent.lock(kind, "file", "write") is None
            assert parent.forked("lock", kind, "file", "write") == result
            assert parent.lock(kind, "file", "none") is None


@places
@kinds
def test_the_locks_of_a_killed_process_go_to_the_one_that_waits(folders, name, place, kind):
    with lockers(*[folders[i] / name for i in place]) as (holder, waiter):
        assert holder.lock(kind, "file", "write") is None
        waiter.begin("lock", kind, "file", "write", 0, 0, True).wait_until_it_waits()
        holder.process.kill()
        assert waiter.result() is None


@places
@kinds
def test_who_has_a_lock_reads_what_was_written_before_also_within_one_tick_of_the_clock(folders, name, place, kind):
    with lockers(*[folders[i] / name for i in place]) as (reader, writer):
        for text, waits in (("1", False), ("2", True)):
            time = reader.times("file")
            assert writer.lock(kind, "file", "write") is None
            assert reader.read("file", 0, 1) != text
            if waits:
                reader.begin("lock", kind, "file", "read", 0, 0, True).wait_until_it_waits()
            assert writer.write("file", 0, text) == 1
            assert writer.set_times("file", time) is None
            assert writer.lock(kind, "file", "none") is None
            assert (reader.result() if waits else reader.lock(kind, "file", "read")) is None
            assert reader.read("file", 0, 1) == text
            assert reader.lock(kind, "file", "none") is None


@kinds
def test_a_stopped_process_keeps_its_locks(folders, name, kind):
    with lockers(folders[0] / name, folders[1] / name, folders[-1] / name) as (holder, other, host):
        assert holder.lock(kind, "file", "write") is None
        holder.process.send_signal(signal.SIGSTOP)
        assert other.lock(kind, "file", "write") == "EAGAIN"
        assert host.lock(kind, "file", "write") == "EAGAIN"
        holder.process.send_signal(signal.SIGCONT)


@kinds
def test_a_signal_interrupts_who_waits(folders, name, kind):
    with lockers(folders[1] / name, folders[0] / name) as (holder, waiter):
        waiter.handle_alarms()
        assert holder.lock(kind, "file", "write") is None
        waiter.begin("lock", kind, "file", "write", 0, 0, True).wait_until_it_waits()
        waiter.process.send_signal(signal.SIGUSR1)
        assert waiter.result() == "EINTR"
        assert holder.lock(kind, "file", "none") is None
        assert holder.lock(kind, "file", "write") is None


def wait_in_a_circle(programs, kind):
    """Each, which has ten bytes, requests those of the next. One gets EDEADLK, and the others get their locks."""
    count = len(programs)
    for i, program in enumerate(programs):
        program.begin("lock", kind, "file", "write", 10 * ((i + 1) % count), 10, True)
    # Which one is told depends on whose request is served last.
    told = wait_until(lambda: next((i + 1 for i in range(count) if programs[i].has_answered()), None), "an answer") - 1
    assert programs[told].result() == errno.errorcode[errno.EDEADLK]
    assert programs[told].lock(kind, "file", "none") is None
    for i in reversed(range(told + 1 - count, told)):
        assert programs[i].result() is None
        assert programs[i].lock(kind, "file", "none") is None


IN_A_CIRCLE = {"one mount": (0, 0, 0), "the host": (-1, -1, -1)}


@pytest.mark.parametrize("place", IN_A_CIRCLE.values(), ids=IN_A_CIRCLE)
@pytest.mark.parametrize("kind", ("posix", "lockf"))
@pytest.mark.parametrize("count", (2, 3))
def test_who_would_wait_for_itself_is_told(folders, name, place, kind, count):
    with lockers(*[folders[place[i]] / name for i in range(count)]) as programs:
        for i, program in enumerate(programs):
            assert program.lock(kind, "file", "write", 10 * i, 10) is None
        wait_in_a_circle(programs, kind)


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """Two mounts of a server that holds the locks itself."""
    with mounts(tmp_path_factory.mktemp("far"), 2, serve=["--no-lend"]) as (root, *directories):
        (root / "file").write_bytes(b"0" * 100)
        yield directories


@pytest.mark.parametrize("kind", ("posix", "lockf"))
@pytest.mark.parametrize("count", (2, 3))
def test_who_would_wait_for_itself_by_way_of_another_mount_is_told(far, kind, count):
    with lockers(*[far[i % 2] / "file" for i in range(count)]) as programs:
        for i, program in enumerate(programs):
            assert program.lock(kind, "file", "write", 10 * i, 10) is None
        wait_in_a_circle(programs, kind)


@pytest.mark.parametrize("kinds", (("posix", "ofd"), ("ofd", "posix")), ids="-".join)
def test_who_waits_by_an_open_file_is_not_told_and_does_not_count(far, kinds):
    with lockers(far[0] / "file", far[1] / "file") as (one, other):
        one.handle_alarms()
        assert one.lock(kinds[0], "file", "write", 0, 10) is None
        assert other.lock(kinds[1], "file", "write", 10, 10) is None
        one.begin("lock", kinds[0], "file", "write", 10, 10, True).wait_until_it_waits()
        other.begin("lock", kinds[1], "file", "write", 0, 10, True).wait_until_it_waits()
        one.process.send_signal(signal.SIGUSR1)
        assert one.result() == "EINTR"
        assert not other.has_answered(), other.result()
        assert one.lock(kinds[0], "file", "none") is None
        assert other.result() is None


def test_who_no_longer_waits_on_another_mount_is_in_no_circle(far):
    with lockers(far[0] / "file", far[1] / "file") as (one, other):
        one.handle_alarms()
        for _ in range(10):
            assert one.lock("posix", "file", "write", 0, 10) is None
            assert other.lock("posix", "file", "write", 10, 10) is None
            one.begin("lock", "posix", "file", "write", 10, 10, True).wait_until_it_waits()
            one.process.send_signal(signal.SIGUSR1)
            assert one.result() == "EINTR"
            other.begin("lock", "posix", "file", "write", 0, 10, True).wait_until_it_waits()
            assert one.lock("posix", "file", "none") is None
            assert other.result() is None
            assert other.lock("posix", "file", "none") is None


OTHER_CIRCLES = {"two mounts": ("posix", (0, 1)), "a mount and the host": ("posix", (0, -1)),
                 "open files of one mount": ("ofd", (0, 0)), "open files of the host": ("ofd", (-1, -1))}


@pytest.mark.parametrize("kind, place", OTHER_CIRCLES.values(), ids=OTHER_CIRCLES)
def test_who_waits_for_another_kernel_or_by_an_open_file_waits_until_a_signal(folders, name, kind, place):
    with lockers(*[folders[i] / name for i in place]) as (one, other):
        one.handle_alarms()
        assert one.lock(kind, "file", "write", 0, 10) is None
        assert other.lock(kind, "file", "write", 10, 10) is None
        one.begin("lock", kind, "file", "write", 10, 10, True).wait_until_it_waits()
        other.begin("lock", kind, "file", "write", 0, 10, True).wait_until_it_waits()
        one.process.send_signal(signal.SIGUSR1)
        assert one.result() == "EINTR"
        assert not other.has_answered(), other.result()
        assert one.lock(kind, "file", "none") is None
        assert other.result() is None


@kinds
def test_a_process_that_waits_can_be_killed_and_gets_no_lock(folders, name, kind):
    with lockers(folders[1] / name, folders[0] / name) as (holder, waiter):
        assert holder.lock(kind, "file", "write") is None
        waiter.begin("lock", kind, "file", "write", 0, 0, True).wait_until_it_waits()
        waiter.process.kill()
        waiter.process.wait(timeout=WATCHDOG)
        assert holder.lock(kind, "file", "none") is None
        assert holder.lock(kind, "file", "write") is None


def test_fifty_that_wait_hold_up_nobody_and_all_get_the_lock(folders, name):
    with contextlib.ExitStack() as stack:
        holder = stack.enter_context(Locker(folders[1] / name))
        assert holder.lock("posix", "file", "write", 0, 1) is None
        waiters = [stack.enter_context(Locker(folders[0] / name)) for _ in range(50)]
        for waiter in waiters:
            waiter.begin("lock", "posix", "file", "write", 0, 1, True)
        for waiter in waiters:
            waiter.wait_until_it_waits()
        with lockers(folders[0] / name) as (reader,):
            for i in range(50):
                assert reader.write("file", 10, f"{i:3}") == 3
                assert reader.read("file", 10, 3) == f"{i:3}"
        assert sorted(os.listdir(folders[0])) == sorted(os.listdir(folders[-1]))
        assert holder.lock("posix", "file", "none") is None
        waiting = list(waiters)
        while waiting:
            had = wait_until(lambda: next((waiter for waiter in waiting if waiter.has_answered()), None), "a lock")
            assert had.result() is None
            assert had.lock("posix", "file", "none") is None
            waiting.remove(had)


def test_flock_the_program_excludes_between_mounts(folders, name):
    inner = f"flock -n {folders[1] / name} echo had; echo $?"
    result = subprocess.run(["flock", folders[0] / name, "sh", "-c", inner], capture_output=True, text=True, timeout=WATCHDOG)
    assert (result.returncode, result.stdout) == (0, "1\n")
    result = subprocess.run(["flock", "-s", folders[0] / name, "flock", "-sn", folders[1] / name, "echo", "had"], capture_output=True,
                            text=True, timeout=WATCHDOG)
    assert (result.returncode, result.stdout) == (0, "had\n")


COUNTER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=300, isolation_level=None)
for _ in range(100):
    connection.execute("begin immediate")
    (value,) = connection.execute("select value from counter").fetchone()
    connection.execute("update counter set value = ?", (value + 1,))
    connection.execute("commit")
"""


def test_sqlite_loses_no_update_of_two_mounts_and_the_host(folders):
    database = f"counter{random.getrandbits(64):x}.db"
    with contextlib.closing(sqlite3.connect(folders[-1] / database)) as connection:
        connection.executescript("pragma journal_mode=delete; create table counter(value); insert into counter values(0)")
    counters = [subprocess.Popen([sys.executable, "-c", COUNTER, folder / database]) for folder in [*folders, folders[0]]]
    assert [counter.wait(timeout=WATCHDOG) for counter in counters] == [0] * 4
    with contextlib.closing(sqlite3.connect(folders[-1] / database)) as connection:
        assert connection.execute("select value from counter").fetchone() == (400,)
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)


def steps(seed):
    """Calls of two processes with two open files each. None waits, and no lock ends by a close."""
    choose = random.Random(seed)
    for _ in range(300):
        kind = choose.choice(("posix", "posix", "ofd", "flock"))
        lock = [kind, choose.choice(("file", "second")), choose.choice(("read", "write", "none", "none")),
                choose.choice((0, 1, 5, 10, 2 ** 40)), choose.choice((0, 1, 5, 10))]
        command = "lock"
        if kind != "flock" and choose.randrange(4) == 0:
            command, lock[2] = "get", choose.choice(("read", "write"))
        yield choose.randrange(2), command, lock
        if choose.randrange(20) == 0:
            yield choose.randrange(2), "reopen_unlocked", []


def results(paths, seed):
    found = []
    with lockers(*paths) as processes:
        for process, path in zip(processes, paths):
            process.open("second", str(path))
        for number, command, arguments in steps(seed):
            process, path = processes[number], paths[number]
            if command == "reopen_unlocked":
                for kind in ("ofd", "flock"):
                    process.lock(kind, "second", "none")
                process.close("second")
                process.open("second", str(path))
                continue
            result = getattr(process, command)(*arguments)
            found.append((command, arguments, result[:3] if isinstance(result, list) else result))
    return found


@pytest.mark.parametrize("place", list(PLACES.values())[:3], ids=list(PLACES)[:3])
def test_any_calls_come_to_the_same_as_on_a_file_of_one_machine(folders, name, tmp_path, place):
    seed = int(os.environ.get("WHERRY_TEST_SEED", 5))
    (tmp_path / "native").write_bytes(b"0" * 100)
    native = results([tmp_path / "native"] * 2, seed)
    assert results([folders[i] / name for i in place], seed) == native
    assert {"EAGAIN", None} <= {result for _, _, result in native if not isinstance(result, list)}


def test_wrong_locks_fail_as_on_a_file_of_this_machine(folders, name, tmp_path):
    def errors(path):
        with Locker() as locker:
            locker.open("reader", str(path), os.O_RDONLY)
            locker.open("writer", str(path), os.O_WRONLY)
            return [locker.lock("posix", "reader", "write"), locker.lock("posix", "writer", "read"), locker.lock("ofd", "reader", "write"),
                    locker.lock("posix", "reader", "read", -1, 1), locker.lock("posix", "reader", "read", 5, -10),
                    locker.lock("posix", "reader", "read", 10, -5), locker.get("posix", "writer", "write", 0, 0),
                    locker.lock("posix", "reader", "read", 2 ** 63 - 1, 2), locker.lock("ofd", "writer", "write", 2 ** 63 - 1, 1),
                    locker.lock("flock", "reader", "write"), locker.lock("flock", "writer", "read")]
    (tmp_path / "native").touch()
    assert errors(folders[0] / name) == errors(tmp_path / "native")
