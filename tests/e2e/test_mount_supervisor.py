# SPDX-License-Identifier: Apache-2.0
"""wherry mount: its daemon is killed, and another one goes on."""

import contextlib
import errno
import itertools
import mmap
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from keeping import write_until_kept
from locking import lockers
from program import PROGRAM
from serving import NO_PASSTHROUGH, SERVERS, Mount, Server, children_of, enter_mount_namespace, is_mounted, need_leases
from waiting import WATCHDOG, is_running, wait_until


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


@SERVERS
def test_programs_go_on_after_the_daemon_was_killed(tmp_path, serve):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", *serve) as server:
        mount = Mount(server, tmp_path / "here")
        with mount as here:
            (here / "folder").mkdir()
            (here / "folder" / "file").write_text("before")
            with open(here / "folder" / "file", "r+") as file, os.scandir(here / "folder") as listing:
                os.rename(here / "folder", here / "moved")
                mount.kill_daemon()
                assert file.read() == "before"
                file.write(" and after")
                file.flush()
                os.fsync(file.fileno())
                assert [entry.name for entry in listing] == ["file"]
                assert os.fstat(file.fileno()).st_size == 16
            assert (server.root / "moved" / "file").read_text() == "before and after"
            mount.kill_daemon()
            assert os.listdir(here) == ["moved"]
        assert not is_mounted(here)


@pytest.mark.parametrize("serve", [[], [NO_PASSTHROUGH]], ids=["passed through", "lent"])
def test_a_file_without_a_name_is_served_on_in_every_call(tmp_path, serve):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", *serve) as server:
        mount = Mount(server, tmp_path / "here")
        with mount as here:
            with open(here / "file", "wb+", buffering=0) as file:
                file.write(b"content")
                os.unlink(here / "file")
                mount.kill_daemon()
                for _ in range(3000):  # the mount asks for a delegation now and then
                    assert os.fstat(file.fileno()).st_size == 7
                    assert os.pread(file.fileno(), 7, 0) == b"content"


@SERVERS
def test_what_was_mapped_is_written_when_a_later_daemon_ends(tmp_path, serve):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(bytes(8192))
    with Server(tmp_path / "root", *serve) as server:
        mount = Mount(server, tmp_path / "here")
        file = os.open(mount.directory / "file", os.O_RDWR)
        with mmap.mmap(file, 8192) as memory:
            memory[10:15] = b"first"
            mount.kill_daemon()
            memory[5000:5005] = b"bytes"
            mount.end()
            written = (server.root / "file").read_bytes()
            assert (written[10:15], written[5000:5005]) == (b"first", b"bytes")
            assert mount.process.returncode == 0 and not is_mounted(mount.directory)
        with pytest.raises(OSError):
            os.close(file)


@pytest.mark.parametrize("flags", [0, os.O_APPEND])
def test_writes_that_were_kept_are_written_by_the_next_daemon(tmp_path, flags):
    need_leases(tmp_path)
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", "--no-lend") as server:
        mount = Mount(server, tmp_path / "here")
        with mount as here:
            file = os.open(here / "file", os.O_WRONLY | os.O_CREAT | flags, 0o644)
            content = write_until_kept(file, server.root / "file")
            server.process.send_signal(signal.SIGSTOP)
            for i in range(50):
                content += b"%04d" % i
                assert os.pwrite(file, content[-4:], len(content) - 4) == 4
            mount.kill_daemon()
            server.process.send_signal(signal.SIGCONT)
            os.close(file)
            assert (server.root / "file").read_bytes() == content


def test_kept_writes_go_to_their_file_under_the_name_that_is_left(tmp_path):
    need_leases(tmp_path)
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", "--no-lend") as server:
        mount = Mount(server, tmp_path / "here")
        with mount as here:
            file = os.open(here / "file", os.O_WRONLY | os.O_CREAT, 0o644)
            os.link(here / "file", here / "second")
            content = write_until_kept(file, server.root / "file")
            os.unlink(here / "second")
            server.process.send_signal(signal.SIGSTOP)
            assert os.pwrite(file, b"kept", len(content)) == 4
            mount.kill_daemon()
            server.process.send_signal(signal.SIGCONT)
            os.close(file)
            assert (server.root / "file").read_bytes() == content + b"kept"


APPENDS = """
import os, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for i in range(20000):
    assert os.write(file, b"%07d " % i * 40) == 320
os.close(file)
"""
SCATTERED_WRITES = """
import os, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for i in range(20000):
    at = i * 7919 % 20000
    assert os.pwrite(file, b"%07d " % at * 40, at * 320) == 320
os.close(file)
"""


@pytest.mark.parametrize("script", [APPENDS, SCATTERED_WRITES], ids=["appends", "scattered writes"])
def test_kept_writes_are_made_once_though_the_daemon_is_killed_again_and_again(tmp_path, script):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", "--no-lend") as server:
        mount = Mount(server, tmp_path / "here")
        with mount as here:
            program = subprocess.Popen([sys.executable, "-c", script, here / "file"])
            for kills in itertools.count(1):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    program.wait(0.05)
                    break
                mount.kill_daemon()
                if kills % 4 == 0:
                    os.statvfs(here)  # an answer: a mount is given up after ten daemons in a row that gave none
            assert program.returncode == 0, mount.end()
            assert (server.root / "file").read_bytes() == b"".join(b"%07d " % i * 40 for i in range(20000))


@pytest.mark.parametrize("serve", [[], [NO_PASSTHROUGH]], ids=["passed through", "lent"])
def test_locks_outlive_the_daemon(tmp_path, serve):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(b"0" * 10)
    with Server(tmp_path / "root", *serve) as server:
        mount = Mount(server, tmp_path / "here")
        with mount as here, lockers(here / "file", here / "file", server.root / "file") as (holder, other, host):
            assert holder.lock("posix", "file", "read") is None
            assert holder.lock("flock", "file", "write") is None
            mount.kill_daemon()
            assert host.lock("flock", "file", "read") == "EAGAIN"
            assert host.lock("posix", "file", "write") == "EAGAIN"
            assert holder.lock("posix", "file", "write") is None
            other.begin("lock", "posix", "file", "write", 0, 0, True).wait_until_it_waits()
            mount.kill_daemon()
            assert host.lock("posix", "file", "read") == "EAGAIN"
            assert holder.lock("posix", "file", "none") is None
            assert other.result() is None
            assert other.lock("posix", "file", "none") is None
            assert host.lock("posix", "file", "write") is None
            holder.close("file")
            wait_until(lambda: host.lock("flock", "file", "write") is None, "the end of a lock")


def test_locks_at_the_server_are_lost_with_the_daemon_and_the_file_says_so(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(b"0" * 10)
    with Server(tmp_path / "root", "--no-lend") as server:
        mount = Mount(server, tmp_path / "here")
        with mount as here, lockers(here / "file", here / "file") as (holder, idle):
            assert holder.lock("posix", "file", "write") is None
            mount.kill_daemon()
            assert holder.write("file", 0, "1") == "ESTALE"
            assert holder.lock("posix", "file", "write") == "ESTALE"
            assert idle.write("file", 0, "2") == 1
            holder.close("file")
            holder.open("file", str(here / "file"))
            wait_until(lambda: holder.lock("posix", "file", "write") is None, "the end of the lock of the first daemon")


@SERVERS
def test_a_daemon_that_is_killed_while_the_server_is_away_waits_for_it(tmp_path, serve):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", *serve) as server:
        mount = Mount(server, tmp_path / "here")
        with mount as here, open(here / "file", "w+") as file:
            file.write("text")
            file.flush()
            server.kill()
            mount.kill_daemon()
            with ThreadPoolExecutor() as threads:
                listing = threads.submit(os.listdir, here)
                size = threads.submit(lambda: os.fstat(file.fileno()).st_size)
                server.start()
                assert listing.result(WATCHDOG) == ["file"] and size.result(WATCHDOG) == 4
            file.seek(0)
            assert file.read() == "text"


def test_what_a_killed_daemon_has_sent_to_a_server_that_was_stopped_is_done_once(tmp_path):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", "--no-lend") as server:
        mount = Mount(server, tmp_path / "here")
        with mount as here, ThreadPoolExecutor() as threads:
            file = os.open(here / "file", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            for i in range(5):
                server.process.send_signal(signal.SIGSTOP)
                append = threads.submit(os.write, file, b"line %d\n" % i)
                folder = threads.submit(os.mkdir, here / str(i))
                time.sleep(0.02)  # most often both are sent by then
                mount.kill_daemon()
                server.process.send_signal(signal.SIGCONT)
                assert append.result(WATCHDOG) == 7 and folder.result(WATCHDOG) is None
            os.close(file)
            assert (server.root / "file").read_text() == "".join(f"line {i}\n" for i in range(5))


def test_a_server_that_does_not_come_back_is_an_error_as_without_a_kill(tmp_path):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root") as server:
        mount = Mount(server, tmp_path / "here", "--timeout", "0.2")
        with mount as here:
            server.kill()
            mount.kill_daemon()
            with pytest.raises(OSError) as caught:
                os.listdir(here)
            assert caught.value.errno == errno.EIO
            server.start()
            wait_until(lambda: is_listed(here), "the server")


def is_listed(folder):
    with contextlib.suppress(OSError):
        return os.listdir(folder) == []


def test_a_mount_whose_supervisor_is_killed_goes_on_and_ends_by_a_signal(tmp_path):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root") as server:
        mount = Mount(server, tmp_path / "here")
        here, daemon = mount.directory, mount.daemon()
        mount.process.kill()
        assert "the supervisor has ended" in mount.process.stderr.readline()
        (here / "file").write_text("text")
        os.kill(daemon, signal.SIGTERM)
        wait_until(lambda: not is_running(daemon), "the end of the daemon")
        mount.process.communicate(timeout=WATCHDOG)
        assert not is_mounted(here) and (server.root / "file").read_text() == "text"


def test_a_mount_in_the_background_goes_on_and_its_log_says_so(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "here").mkdir()
    with Server(tmp_path / "root") as server:
        subprocess.run([PROGRAM, "mount", "--daemon", "--log", "log", server.address, "here"], cwd=tmp_path, env=server.env,
                       stderr=subprocess.DEVNULL, check=True, timeout=WATCHDOG)
        supervisor = next(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_supervisor(pid, tmp_path))
        before, = children_of(supervisor)
        os.kill(before, signal.SIGKILL)
        (tmp_path / "here" / "file").write_text("text")
        assert (tmp_path / "root" / "file").read_text() == "text"
        assert "the daemon has ended: Killed" in (tmp_path / "log").read_text()
        os.kill(supervisor, signal.SIGTERM)
        wait_until(lambda: not is_running(supervisor), "the end of the supervisor")
        assert not is_mounted(tmp_path / "here")


def is_supervisor(pid, folder):
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return (words[0].endswith(b"wherry-mount") and not any(word.startswith(b"supervisor=") for word in words)
                and Path(f"/proc/{pid}/fd/2").readlink() == folder / "log")
    return False


def test_a_mount_that_is_unmounted_while_no_daemon_runs_ends(tmp_path):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root") as server:
        for _ in range(5):
            mount = Mount(server, tmp_path / "here")
            os.kill(mount.daemon(), signal.SIGKILL)
            subprocess.run(["umount", mount.directory], check=True)
            errors = mount.process.communicate(timeout=WATCHDOG)[1]
            assert mount.process.returncode == 0, errors
            assert not is_mounted(mount.directory)


def test_a_signal_while_no_daemon_runs_unmounts(tmp_path):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root") as server:
        for _ in range(5):
            mount = Mount(server, tmp_path / "here")
            os.kill(mount.daemon(), signal.SIGKILL)
            mount.end()
            assert not is_mounted(mount.directory)


def living_of_group(group):
    """The processes of a group that have not ended."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                yield int(stat.parent.name)


def test_a_mount_that_is_killed_while_it_starts_leaves_no_process(tmp_path):
    """A daemon that is killed while it waits for its own mount could never end."""
    (tmp_path / "root").mkdir()
    (tmp_path / "here").mkdir()
    with Server(tmp_path / "root") as server:
        for after in range(100):
            mount = subprocess.Popen([PROGRAM, "mount", "--quiet", server.address, tmp_path / "here", *server.mount_options], env=server.env,
                                     start_new_session=True)
            time.sleep(after * 0.0003)
            os.killpg(mount.pid, signal.SIGKILL)
            mount.wait(timeout=WATCHDOG)
            wait_until(lambda group=mount.pid: not list(living_of_group(group)), "the end of the daemon")
            subprocess.run(["umount", "--lazy", tmp_path / "here"], stderr=subprocess.DEVNULL, check=False)


def test_a_daemon_that_dies_again_and_again_is_given_up(tmp_path):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root") as server:
        # The leak checker of a sanitizer is a child, too, and must not be killed.
        server.env["ASAN_OPTIONS"] = server.env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        mount = Mount(server, tmp_path / "here")
        before = None
        while mount.process.poll() is None:
            if (now := mount.daemon()) not in (None, before):
                os.kill(now, signal.SIGKILL)
                before = now
        assert mount.process.returncode == 1 and not is_mounted(mount.directory)
        assert "no daemon serves" in mount.process.communicate(timeout=WATCHDOG)[1]


GAME = Path(__file__).with_name("restart_game.py")
ROLES = ["names", "names", "data", "append", "append", "mapped", "lists"]
# Where the server lends its files. Locks at the server end with the daemon, and so do files that have no name any more.
ROLES_OF_LENT_FILES = ["by_range", "by_range", "by_flock", "by_flock", "nameless"]


def play(mount, here, roles, seconds):
    """Kills the daemon until the programs end. Returns what they have said."""
    chance = random.Random(os.environ.get("WHERRY_TEST_SEED", "1"))
    names = [f"{role}-{i}" for i, role in enumerate(roles)]
    programs = [subprocess.Popen([sys.executable, GAME, role, here / name, str(seconds)], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True) for role, name in zip(roles, names)]
    for kills in itertools.count(1):
        if all(program.poll() is not None for program in programs):
            break
        time.sleep(chance.random() * 0.15)
        mount.kill_daemon()
        if kills % 4 == 0:
            os.statvfs(here)  # an answer: a mount is given up after ten daemons in a row that gave none
    said = {name: program.communicate(timeout=WATCHDOG)[0] for name, program in zip(names, programs)}
    failed = [words for words, program in zip(said.items(), programs) if program.returncode != 0]
    assert not failed, failed
    return said


@SERVERS
def test_no_program_sees_that_the_daemon_is_killed_again_and_again(tmp_path, serve):
    (tmp_path / "root").mkdir()
    roles = ROLES if "--no-lend" in serve else ROLES + ROLES_OF_LENT_FILES
    with Server(tmp_path / "root", *serve) as server:
        mount = Mount(server, tmp_path / "here")
        with mount as here:
            said = play(mount, here, roles, 3)
            for lock, role in (("lockf", "by_range"), ("flock", "by_flock")):
                counted = [int(words.split()[words.split().index("counted") + 1]) for name, words in said.items() if role in name]
                assert not counted or int((server.root / lock).read_text()) == sum(counted)


def test_a_daemon_that_is_killed_while_the_kernel_drops_pages_that_are_being_read_keeps_nobody_waiting(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "long").write_bytes(bytes(8 << 20))
    with Server(tmp_path / "root", NO_PASSTHROUGH) as server:
        mount = Mount(server, tmp_path / "here")
        with mount as here:
            play(mount, here, ["reads"] * 4, 2)
            wait_until(lambda: len(children_of(mount.process.pid)) == 1, "the end of the daemons that were killed")
