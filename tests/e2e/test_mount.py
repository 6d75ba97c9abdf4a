# SPDX-License-Identifier: Apache-2.0
"""wherry mount: its life, and what it promises beyond what a file system does anyway (test_mount_beside.py)."""

import errno
import mmap
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from other_user import NOBODY, need_other_user
from program import PROGRAM, environment, wherry
from serving import HAS_FINE_TIMES, SERVERS, Mount, Server, enter_mount_namespace, is_mounted, limits_of, mounts
from waiting import WATCHDOG


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


@pytest.fixture
def server(tmp_path):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root") as running:
        yield running


def failure(*words, env=None):
    result = wherry("mount", *words, env=env)
    assert result.returncode == 1
    return result.stderr


def test_a_mount_says_that_it_is_ready_and_a_signal_unmounts(server, tmp_path):
    mount = Mount(server, tmp_path / "here")
    with mount as here:
        assert mount.said.removesuffix("\n").removesuffix(" (passthrough)") == f"wherry mount: {server.address} is mounted on {here}"
        (here / "new").write_text("text")
        assert (server.root / "new").read_text() == "text"
    assert mount.process.returncode == 0 and not is_mounted(here) and os.listdir(here) == []


def test_a_mount_below_the_directory_that_is_served_does_not_show_itself(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "file").write_text("text")
    with Server(tmp_path) as server, Mount(server, tmp_path / "below" / "here") as here:
        found = subprocess.run(["find", here, "-printf", "%P "], env=environment(LC_ALL="C"), capture_output=True, text=True)
        assert sorted(found.stdout.split()) == ["below", "file"] and "Too many levels" in found.stderr
        with pytest.raises(OSError) as caught:
            os.stat(here / "below" / "here")
        assert caught.value.errno == errno.ELOOP
        assert (here / "file").read_text() == "text"


def test_umount_ends_the_daemon(server, tmp_path):
    mount = Mount(server, tmp_path / "here")
    subprocess.run(["umount", mount.directory], check=True)
    assert mount.process.wait(timeout=WATCHDOG) == 0


def test_a_signal_unmounts_though_a_program_uses_the_mount_and_its_pages_are_written(server, tmp_path):
    (server.root / "file").write_bytes(bytes(8192))
    mount = Mount(server, tmp_path / "here")
    file = os.open(mount.directory / "file", os.O_RDWR)
    with mmap.mmap(file, 8192) as memory:
        memory[5000:5005] = b"bytes"
        mount.end()
        assert mount.process.returncode == 0 and not is_mounted(mount.directory)
        assert (server.root / "file").read_bytes()[5000:5005] == b"bytes"
        with pytest.raises(OSError):
            os.fstat(file)
    with pytest.raises(OSError):
        os.close(file)


def test_a_signal_leaves_alone_what_was_mounted_after_it_was_detached(server, tmp_path):
    (server.root / "file").write_text("text")
    old = Mount(server, tmp_path / "here")
    with open(old.directory / "file") as file:
        subprocess.run(["umount", "--lazy", old.directory], check=True)
        with Mount(server, tmp_path / "here") as here:
            assert file.read() == "text"
            old.end()
            assert old.process.returncode == 0 and is_mounted(here) and (here / "file").read_text() == "text"
        assert not is_mounted(here)
        with pytest.raises(OSError):
            os.fstat(file.fileno())
        with pytest.raises(OSError):
            file.close()


def test_daemon_returns_when_the_mount_answers(server, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    (server.root / "file").write_text("text")
    result = subprocess.run([PROGRAM, "mount", "--daemon", "--log", "log", server.address, "here"], cwd=tmp_path,
                            env=server.env, capture_output=True, text=True, timeout=WATCHDOG)
    assert (result.returncode, result.stdout) == (0, "") and " is mounted on " in result.stderr
    assert (here / "file").read_text() == "text" and (tmp_path / "log").exists()
    subprocess.run(["umount", here], check=True)


def test_a_daemon_that_cannot_mount_says_why(tmp_path):
    env = environment(WHERRY_CONNECT_TIMEOUT="1", WHERRY_JOB="nobody-is-here")
    result = subprocess.run([PROGRAM, "mount", "--daemon", "wherry://0:7000", tmp_path], env=env, capture_output=True,
                            text=True, timeout=WATCHDOG)
    assert result.returncode == 1 and result.stderr.startswith("wherry mount: ") and "wherry://0:7000" in result.stderr


def test_a_daemon_that_cannot_mount_fails_also_where_the_shell_ignores_ended_children(server, tmp_path):
    result = subprocess.run([PROGRAM, "mount", "--daemon", server.address, tmp_path / "nowhere"], env=server.env, capture_output=True,
                            text=True, timeout=WATCHDOG, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert result.returncode == 1 and "name a directory that exists" in result.stderr


def test_a_daemon_keeps_nothing_open_that_it_was_started_with(server, tmp_path):
    (tmp_path / "here").mkdir()
    reader, writer = os.pipe()
    result = subprocess.run([PROGRAM, "mount", "--daemon", server.address, tmp_path / "here"], env=server.env, pass_fds=[writer],
                            capture_output=True, timeout=WATCHDOG)
    os.close(writer)
    os.set_blocking(reader, False)
    assert result.returncode == 0 and os.read(reader, 1) == b""
    os.close(reader)
    subprocess.run(["umount", tmp_path / "here"], check=True)


def test_signals_that_nohup_ignores_do_not_unmount(server, tmp_path):
    mount = Mount(server, tmp_path / "here", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    with mount as here:
        mount.process.send_signal(signal.SIGHUP)
        for i in range(200):
            (here / "file").write_text(str(i))
        assert (server.root / "file").read_text() == "199" and mount.process.poll() is None


def test_what_is_wrong_is_said(server, tmp_path):
    (tmp_path / "file").touch()
    job = {"WHERRY_JOB": server.env["WHERRY_JOB"]}
    assert "name a directory that exists" in failure(server.address, tmp_path / "nowhere", env=job)
    assert "name a directory" in failure(server.address, tmp_path / "file", env=job)
    with Mount(server, tmp_path / "here") as here:
        assert f"wherry mount is there already: umount {here}" in failure(server.address, here, env=job)
    assert wherry("mount", server.address).returncode == 2


def test_a_machine_without_the_device_is_told_what_to_allow(server, tmp_path):
    hidden = "mount -t tmpfs tmpfs /dev && exec \"$@\""
    result = subprocess.run(["unshare", "--mount", "sh", "-c", hidden, "sh", PROGRAM, "mount", server.address, tmp_path],
                            env=server.env, capture_output=True, text=True, timeout=WATCHDOG)
    assert result.returncode == 1 and "--device /dev/fuse" in result.stderr


@pytest.fixture
def users_folder():
    """A folder of the user nobody's, whom root's own /dev may not serve."""
    need_other_user(PROGRAM)
    if shutil.which("fusermount3") is None:
        pytest.skip("a user mounts by fusermount3, which is missing (Debian: fuse3)")
    with tempfile.TemporaryDirectory(prefix="wherry-mount-") as name:
        device = Path(name) / "fuse"
        try:
            os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(10, 229))
        except PermissionError:
            pytest.skip("no device can be made here")
        subprocess.run(["mount", "--bind", device, "/dev/fuse"], check=True)
        if not can_be_opened(device):
            subprocess.run(["umount", "/dev/fuse"], check=True)
            pytest.skip("devices of this file system cannot be opened")
        os.chown(name, 65534, 65534)
        yield Path(name), device
        subprocess.run(["umount", "/dev/fuse"], check=True)


def can_be_opened(device):
    try:
        os.close(os.open(device, os.O_RDWR))
    except OSError:
        return False
    return True


def become_nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def test_a_user_mounts_through_fusermount3_and_is_told_what_that_needs(users_folder):
    folder, device = users_folder
    (folder / "root").mkdir()
    (folder / "root" / "file").write_text("text")
    for path in (folder / "root", folder / "root" / "file"):
        os.chown(path, 65534, 65534)
    with Server(folder / "root", preexec_fn=become_nobody) as server:
        closed = subprocess.run([*NOBODY, PROGRAM, "mount", server.address, folder], env=server.env, capture_output=True, text=True)
        assert closed.returncode == 1 and "chmod 666 /dev/fuse" in closed.stderr
        device.chmod(0o666)
        (folder / "here").mkdir()
        os.chown(folder / "here", 65534, 65534)
        mount = Mount(server, folder / "here", preexec_fn=become_nobody)
        with mount as here:
            read = subprocess.run([*NOBODY, "sh", "-c", 'cat "$0"/file && echo new >"$0"/new', here], capture_output=True, text=True)
            assert (read.returncode, read.stdout, read.stderr) == (0, "text", "")
            assert (server.root / "new").read_text() == "new\n"
            assert limits_of(here) == (128, 1)
            mount.kill_daemon()
            again = subprocess.run([*NOBODY, "cat", here / "new"], capture_output=True, text=True)
            assert (again.returncode, again.stdout, again.stderr) == (0, "new\n", "")
        assert "passthrough" not in mount.said
        assert mount.process.returncode == 0 and not is_mounted(mount.directory)


def test_a_mount_that_is_in_use_ends_though_path_leads_through_it(users_folder):
    folder, device = users_folder
    device.chmod(0o666)
    for name in ("root", "root/bin", "here"):
        (folder / name).mkdir()
        os.chown(folder / name, 65534, 65534)
    with Server(folder / "root", preexec_fn=become_nobody) as server:
        server.env["PATH"] = f"{folder}/here/bin:{server.env['PATH']}"
        mount = Mount(server, folder / "here", preexec_fn=become_nobody)
        with mount as here:
            mount.kill_daemon()
            user = subprocess.Popen([*NOBODY, "sh", "-c", 'cd "$0" && echo in && exec sleep 1000', here], stdout=subprocess.PIPE, text=True)
            assert user.stdout.readline() == "in\n"
            mount.end()
        user.kill()
        user.communicate()
        assert mount.process.returncode == 0 and not is_mounted(mount.directory)


def test_a_mount_by_root_raises_the_kernels_limits(server, tmp_path):
    if not os.access("/sys/class/bdi", os.W_OK):
        pytest.skip("/sys cannot be written here")
    mount = Mount(server, tmp_path / "here")
    with mount as here:
        assert limits_of(here) == (256, 10)
        mount.kill_daemon()
        assert limits_of(here) == (256, 10)


def test_a_mount_keeps_the_kernels_limits_where_sys_cannot_be_written(server, tmp_path):
    subprocess.run(["mount", "-o", "remount,bind,ro", "/sys"], check=True)
    try:
        mount = Mount(server, tmp_path / "here")
        with mount as here:
            (here / "file").write_text("text")
            assert limits_of(here) == (128, 1)
        assert mount.process.returncode == 0
    finally:
        subprocess.run(["mount", "-o", "remount,bind,rw", "/sys"], check=True)


def test_a_directory_with_files_is_hidden_and_comes_back(server, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "own").touch()
    with Mount(server, tmp_path / "here") as here:
        assert os.listdir(here) == []
    assert os.listdir(here) == ["own"]


def test_a_daemon_killed_with_its_supervisor_leaves_enotconn_and_the_next_mount_cleans_up(server, tmp_path):
    mount = Mount(server, tmp_path / "here")
    (mount.directory / "file").write_text("kept")
    file = os.open(mount.directory / "file", os.O_RDONLY)
    mount.kill()
    for call in (os.fstat, os.close):
        with pytest.raises(OSError) as caught:
            call(file)
        assert caught.value.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    with pytest.raises(OSError) as caught:
        os.listdir(mount.directory)
    assert caught.value.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    with Mount(server, tmp_path / "here") as here:
        assert (here / "file").read_text() == "kept"
    assert not is_mounted(here)


def test_a_mount_for_reading_only_changes_nothing(server, tmp_path):
    (server.root / "file").write_text("text")
    with Mount(server, tmp_path / "here", "--read-only") as here:
        assert (here / "file").read_text() == "text"
        for change in (lambda: (here / "file").write_text("other"), lambda: (here / "new").touch(), (here / "file").unlink):
            with pytest.raises(OSError) as caught:
                change()
            assert caught.value.errno == errno.EROFS
    with mounts(tmp_path, serve=["--read-only"]) as (_, here), pytest.raises(OSError) as caught:
        (here / "new").touch()
    assert caught.value.errno == errno.EROFS


@SERVERS
def test_what_one_mount_has_written_the_other_reads_at_once(tmp_path, serve):
    with mounts(tmp_path, 2, serve=serve) as (_, one, other):
        (one / "file").write_bytes(b"first")
        with open(one / "file", "r+b", buffering=0) as writer, open(other / "file", "rb", buffering=0) as reader:
            for i in range(200):
                data = str(i).rjust(5 if HAS_FINE_TIMES else 5 + i).encode()
                os.pwrite(writer.fileno(), data, 0)
                assert os.pread(reader.fileno(), 1000, 0) == data
            os.ftruncate(writer.fileno(), 2)
            assert os.pread(reader.fileno(), 100, 0) == b"  " and os.fstat(reader.fileno()).st_size == 2
        os.rename(one / "file", one / "moved")
        assert os.listdir(other) == ["moved"] and not os.path.exists(other / "file")


@SERVERS
def test_appends_by_two_mounts_keep_each_other(tmp_path, serve):
    with mounts(tmp_path, 2, serve=serve) as (root, *both):
        def append(folder, letter):
            file = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            for i in range(300):
                line = f"{letter} {i} ".ljust(100, letter).encode() + b"\n"
                assert os.write(file, line) == len(line)
            os.close(file)

        threads = [threading.Thread(target=append, args=(folder, letter)) for folder, letter in zip(both, "ab")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lines = (root / "log").read_text().splitlines()
        for letter in "ab":
            own = [line for line in lines if line.startswith(letter)]
            assert [int(line.split()[1]) for line in own] == list(range(300))
        assert len(lines) == 600 and all(len(line) == 100 for line in lines)
        assert [(folder / "log").read_text().splitlines() for folder in both] == [lines, lines]


def test_a_file_that_was_removed_or_replaced_stays_what_it_is_to_who_has_it_open(tmp_path):
    with mounts(tmp_path, 2) as (_, one, other):
        (one / "file").write_text("old")
        (one / "new").write_text("new")
        with open(one / "file", "r+") as first, open(other / "file") as second:
            os.rename(other / "new", other / "file")
            assert (one / "file").read_text() == "new"
            first.write("OLD and longer")
            first.flush()
            assert second.read() == "OLD and longer"
            assert os.fstat(first.fileno()).st_nlink == 0 and os.fstat(first.fileno()).st_size == 14
            os.fchmod(first.fileno(), 0o600)
            os.ftruncate(first.fileno(), 3)
            assert os.fstat(second.fileno()).st_mode & 0o777 == 0o600 and os.fstat(second.fileno()).st_size == 3
        assert (one / "file").read_text() == "new"


def test_what_lies_below_a_directory_is_found_while_it_is_renamed(tmp_path):
    with mounts(tmp_path) as (_, here):
        (here / "a").mkdir()
        (here / "a" / "file").write_text("text")
        folder = os.open(here / "a", os.O_RDONLY | os.O_DIRECTORY)
        done = threading.Event()

        def rename():
            names = ["a", "b"]
            while not done.is_set():
                os.rename(here / names[0], here / names[1])
                names.reverse()

        renamer = threading.Thread(target=rename)
        renamer.start()
        try:
            for i in range(300):
                assert os.stat("file", dir_fd=folder).st_size == 4
                os.close(os.open("file", os.O_RDWR, dir_fd=folder))
                os.utime("file", (i, i), dir_fd=folder)
                os.close(os.open("new", os.O_RDWR | os.O_CREAT | os.O_EXCL, dir_fd=folder))
                os.unlink("new", dir_fd=folder)
        finally:
            done.set()
            renamer.join()
            os.close(folder)


def _as_nobody(folder, call):
    """Returns whether `call()` is true in a process of another user that is in the folder."""
    child = os.fork()
    if child == 0:  # in a sandbox, other users may reach nothing but where they are
        try:
            os.chdir(folder)
            os.umask(0)
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            os._exit(0 if call() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def test_users_see_what_owners_and_modes_allow(open_folder):
    with mounts(Path(open_folder), mount=["--allow-other"]) as (_, here):
        (here / "mine").write_text("mine")
        (here / "mine").chmod(0o600)
        (here / "everybody's").write_text("ours")
        assert _as_nobody(here, lambda: os.read(os.open("everybody's", os.O_RDONLY), 10) == b"ours" and
                          not os.access("mine", os.R_OK, effective_ids=True))


def test_nobody_else_s_data_gets_into_a_set_user_id_file_of_the_server_s_user(open_folder):
    with mounts(Path(open_folder), mount=["--allow-other"]) as (root, here):
        root.chmod(0o777)
        (root / "old").touch()
        (root / "old").chmod(0o6777)
        (root / "cut").touch()
        (root / "cut").chmod(0o6777)

        def appends(name, mode):
            file = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_APPEND, mode)
            return os.write(file, b"data") == 4

        assert _as_nobody(here, lambda: appends("old", 0) and appends("new", 0o6777))
        assert _as_nobody(here, lambda: os.mknod("node", 0o6777) is None)
        assert _as_nobody(here, lambda: os.write(os.open("cut", os.O_WRONLY | os.O_TRUNC), b"data") == 4)
        assert [(name, oct((root / name).stat().st_mode & 0o7777)) for name in ("old", "new", "node", "cut")] == [
            ("old", "0o777"), ("new", "0o777"), ("node", "0o777"), ("cut", "0o777")]
