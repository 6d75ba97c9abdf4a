# SPDX-License-Identifier: Apache-2.0
"""wherry mount: where the kernel can, it moves data between programs and the server's files without the daemon."""

import contextlib
import errno
import fcntl
import mmap
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from in_place_reads import CALLS, READING, in_place
from mounting import mounted
from program import PROGRAM, environment
from serving import NO_PASSTHROUGH, Mount, Server, enter_mount_namespace, mounts
from waiting import WATCHDOG, wait_until


@pytest.fixture(scope="module", autouse=True)
def namespace(tmp_path_factory):
    enter_mount_namespace()
    folder = tmp_path_factory.mktemp("passthrough")
    with Server(folder) as server:
        mount = Mount(server, folder / "mount")
        mount.end()
        if "(passthrough)" not in mount.said:
            pytest.skip("no passthrough here: Linux before 6.9, or no rights for it")


def sleeps_of(call):
    """How often this process has waited for others during a call."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before


@contextlib.contextmanager
def opened(path, flags):
    file = os.open(path, flags, 0o666)
    try:
        yield file
    finally:
        os.close(file)


def is_open(path):
    """Whether any process of this machine has the file open."""
    with opened(path, os.O_RDONLY) as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except BlockingIOError:
            return True
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


@pytest.mark.parametrize("serve, is_asked", [([], False), ([NO_PASSTHROUGH], True), (["--no-lend"], True)])
def test_reads_and_writes_ask_nobody(tmp_path, serve, is_asked):
    with mounts(tmp_path, serve=serve) as (root, here), opened(here / "file", os.O_RDWR | os.O_CREAT) as file:
        assert (sleeps_of(lambda: [os.pwrite(file, b"x" * 5000, i * 5000) for i in range(2000)]) > 1000) == is_asked
        assert (sleeps_of(lambda: [os.pread(file, 5000, i * 5000) for i in range(2000)]) > 1000) == is_asked
        assert (root / "file").read_bytes() == b"x" * 10_000_000


def test_what_the_host_and_another_mount_write_is_in_a_mapping_at_once(tmp_path):
    with mounts(tmp_path, 2) as (root, here, there):
        (root / "file").write_bytes(b"0" * 8192)
        with opened(here / "file", os.O_RDWR) as file, mmap.mmap(file, 8192) as memory:
            for i, path in enumerate([root / "file", there / "file"] * 20):
                content = b"%04d" % i
                with opened(path, os.O_WRONLY) as writer:
                    os.pwrite(writer, content, 4094)
                assert memory[4094:4098] == content and os.pread(file, 4, 4094) == content
                memory[10:14] = content
                with opened(path, os.O_RDONLY) as reader:
                    assert os.pread(reader, 4, 10) == content


def test_sizes_and_times_are_those_of_the_host_after_each_write(tmp_path):
    with mounts(tmp_path, 2) as (root, here, there), opened(here / "file", os.O_RDWR | os.O_CREAT) as file, \
            opened(there / "file", os.O_RDWR) as other:
        for i in range(1, 100):
            os.write(file if i % 2 else other, b"x" * i)
            os.lseek(file if i % 2 == 0 else other, 0, os.SEEK_END)
            expected = (root / "file").stat()
            for one in (file, other):
                assert (os.fstat(one).st_size, os.fstat(one).st_mtime_ns) == (expected.st_size, expected.st_mtime_ns)
        assert expected.st_size == sum(range(1, 100))
        os.ftruncate(other, 5)
        assert os.pread(file, 10, 0) == b"x" * 5


def test_descriptors_of_every_kind_of_one_file_work_together(tmp_path):
    with mounts(tmp_path) as (root, here), contextlib.ExitStack() as stack:
        path = here / "file"
        page = mmap.mmap(-1, 4096)
        page[:] = b"d" * 4096
        for order in range(5):
            kinds = [os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_RDONLY, os.O_RDWR | os.O_DIRECT, os.O_WRONLY | os.O_SYNC]
            kinds = kinds[order:] + kinds[:order]
            path.write_bytes(b"")
            files = {kind: stack.enter_context(opened(path, kind)) for kind in kinds}
            os.write(files[os.O_RDWR | os.O_DIRECT], page)
            os.write(files[os.O_WRONLY | os.O_APPEND], b"a" * 5000)
            os.pwrite(files[os.O_WRONLY | os.O_SYNC], b"s", 4095)
            assert os.pread(files[os.O_RDONLY], 10_000, 0) == b"d" * 4095 + b"s" + b"a" * 5000 == (root / "file").read_bytes()
            with mmap.mmap(files[os.O_RDWR], 0) as memory:
                memory[9095] = ord("m")
            os.ftruncate(files[os.O_RDWR], 9097)
            os.write(files[os.O_WRONLY | os.O_APPEND], b"e")
            assert os.pread(files[os.O_RDONLY], 3, 9095) == b"m\0e"
            stack.pop_all().close()


def test_o_append_that_is_set_later_appends(tmp_path):
    with mounts(tmp_path) as (root, here), opened(here / "file", os.O_WRONLY | os.O_CREAT) as file:
        (root / "file").write_bytes(b"before")
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
        os.write(file, b" and after")
        assert (root / "file").read_bytes() == b"before and after"


def test_an_append_leaves_the_offset_behind_what_it_wrote(tmp_path):
    with mounts(tmp_path) as (root, here), opened(here / "file", os.O_WRONLY | os.O_CREAT | os.O_APPEND) as file:
        with opened(root / "file", os.O_WRONLY | os.O_APPEND) as native:
            for i in range(20):
                os.write(native, b"x" * i)
                before = os.fstat(native).st_size
                assert os.write(file, b"record") == 6 and os.lseek(file, 0, os.SEEK_CUR) == before + 6
                assert (root / "file").read_bytes()[before:] == b"record"


def test_a_file_that_is_closed_is_open_nowhere(tmp_path):
    with mounts(tmp_path) as (root, here):
        for i in range(50):
            path = here / f"file{i}"
            path.write_bytes(b"content")
            assert path.read_bytes() == b"content"
            with opened(path, os.O_RDONLY) as file, mmap.mmap(file, 0, prot=mmap.PROT_READ) as memory:
                os.unlink(path)
                assert memory[:] == b"content"
            path.write_bytes(b"content")
        wait_until(lambda: not any(is_open(path) for path in root.iterdir()), "the end of all that is open")


def test_data_goes_on_without_the_server(tmp_path):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root") as server, Mount(server, tmp_path / "mount") as here:
        with opened(here / "file", os.O_RDWR | os.O_CREAT) as file:
            os.write(file, b"before")
            server.kill()
            os.write(file, b" and after")
            os.fsync(file)
            assert os.pread(file, 100, 0) == b"before and after" == (tmp_path / "root" / "file").read_bytes()
            server.start()
            assert (here / "file").read_bytes() == b"before and after"
            os.pwrite(file, b"B", 0)
        assert (here / "file").read_bytes() == b"Before and after"


def test_limits_of_the_program_that_writes_hold(tmp_path):
    script = """
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
print(os.write(file, b"x" * 20000))
try:
    os.write(file, b"x")
except OSError as error:
    print(error.strerror)
"""
    with mounts(tmp_path) as (root, here):
        said = [subprocess.run([sys.executable, "-c", script, folder / name], capture_output=True, text=True, timeout=WATCHDOG)
                for name, folder in [("native", root), ("mount", here)]]
        assert said[0].stdout == said[1].stdout == "10000\nFile too large\n", said
        assert (root / "mount").stat().st_size == 10000


def test_a_full_disk_is_enospc_of_the_write(tmp_path):
    with mounted("-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path / "root") as root, mounts(tmp_path) as (_, here):
        with opened(here / "file", os.O_RDWR | os.O_CREAT) as file:
            assert os.write(file, b"x" * (2 << 20)) == 1 << 20
            with pytest.raises(OSError, match="No space left"):
                os.write(file, b"x")
            assert os.fstat(file).st_size == (root / "file").stat().st_size == 1 << 20


def test_files_of_an_overlay_go_through_the_daemon(tmp_path):
    for name in ("lower", "upper", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "lower" / "file").write_bytes(b"lower")
    settings = ",".join(f"{key}={tmp_path}/{name}" for key, name in [("lowerdir", "lower"), ("upperdir", "upper"), ("workdir", "work")])
    with mounted("-t", "overlay", "-o", settings, "overlay", tmp_path / "root") as root, mounts(tmp_path) as (_, here):
        assert (here / "file").read_bytes() == b"lower"
        (here / "file").write_bytes(b"upper")
        assert (root / "file").read_bytes() == b"upper" and (tmp_path / "lower" / "file").read_bytes() == b"lower"


def test_an_overlay_lies_above_a_mount(tmp_path):
    for name in ("upper", "work"):
        (tmp_path / name).mkdir()
    with mounts(tmp_path) as (root, here):
        (root / "file").write_bytes(b"lower")
        settings = f"lowerdir={here},upperdir={tmp_path}/upper,workdir={tmp_path}/work"
        with mounted("-t", "overlay", "-o", settings, "overlay", tmp_path / "above") as above:
            assert (above / "file").read_bytes() == b"lower"
            (above / "file").write_bytes(b"upper")
            assert (above / "file").read_bytes() == b"upper" and (root / "file").read_bytes() == b"lower"


def test_programs_are_executed_and_their_files_are_busy_meanwhile(tmp_path):
    with mounts(tmp_path) as (_, here):
        program = here / "sleep"
        subprocess.run(["cp", "/bin/sleep", program], check=True)
        running = subprocess.Popen([program, "1000"])
        try:
            with pytest.raises(OSError, match="Text file busy"):
                os.open(program, os.O_WRONLY)
        finally:
            running.send_signal(signal.SIGKILL)
            running.wait()
        os.close(os.open(program, os.O_WRONLY))


HAS_LIBRARY = (Path(PROGRAM).resolve().parent.parent / "lib/wherry/files/libwherry-preload.so").exists()


@pytest.mark.skipif(not HAS_LIBRARY, reason="a sanitizer's build has no library that programs could load")
@pytest.mark.parametrize("serve", [[], [NO_PASSTHROUGH]])
def test_reads_by_wherry_run_are_made_in_place(tmp_path, serve):
    with mounts(tmp_path, serve=serve) as (root, here):
        (root / "file").write_bytes(bytes(504_000))
        assert in_place(here, [], READING, "file", CALLS) > CALLS / 2
        said = subprocess.run([PROGRAM, "run", "--files", here, "--", "true"], env=environment(), capture_output=True, text=True).stderr
        assert said == ""


@pytest.mark.skipif(not HAS_LIBRARY, reason="a sanitizer's build has no library that programs could load")
def test_holes_of_a_file_on_tmpfs_are_not_filled_by_reads_in_place(tmp_path):
    with mounted("-t", "tmpfs", "tmpfs", tmp_path / "root") as root, mounts(tmp_path) as (_, here):
        with open(root / "file", "wb") as file:
            file.truncate(1_000_000)
        in_place(here, [], READING, "file", CALLS)
        assert (root / "file").stat().st_blocks == 0


@pytest.mark.parametrize("serve, asks", [([], False), ([NO_PASSTHROUGH], True), (["--no-lend"], True)])
def test_names_are_looked_up_without_the_server_where_it_has_the_same_rights(tmp_path, serve, asks):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", *serve) as server, Mount(server, tmp_path / "mount") as here:
        server.process.send_signal(signal.SIGSTOP)
        # The shell changes its directory: `cwd` would make Popen wait for the server.
        made = subprocess.Popen(["sh", "-c", "cd mount && mkdir folder && echo text > folder/file && mv folder moved && ls moved && cat moved/file"],
                                cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        if asks:
            wait_until(lambda: is_asleep(made.pid), "a request to the server")
            assert list((tmp_path / "root").iterdir()) == []
            server.process.send_signal(signal.SIGCONT)
        assert made.communicate(timeout=WATCHDOG)[0] == "file\ntext\n"
        server.process.send_signal(signal.SIGCONT)
        assert (here / "moved" / "file").read_text() == (server.root / "moved" / "file").read_text() == "text\n"


def is_asleep(pid):
    """Whether a process, or the last one that it has started, waits for something. It may not be what is meant yet."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return Path(f"/proc/{children[-1] if children else pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "SD"
    except OSError:
        return False


def test_a_server_with_other_rights_is_asked(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("text")
    with Server(root, preexec_fn=lambda: os.setgroups([4711])) as server, Mount(server, tmp_path / "mount") as here:
        server.process.send_signal(signal.SIGSTOP)
        asking = subprocess.Popen(["cat", here / "file"], stdout=subprocess.PIPE, text=True)
        wait_until(lambda: is_asleep(asking.pid), "a request to the server")
        server.process.send_signal(signal.SIGCONT)
        assert asking.communicate(timeout=WATCHDOG)[0] == "text"


def test_calls_wait_for_a_server_that_is_gone(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_text("text")
    with Server(tmp_path / "root") as server, Mount(server, tmp_path / "mount") as here:
        assert (here / "file").read_text() == "text"
        server.kill()
        asking = subprocess.Popen(["cat", here / "file"], stdout=subprocess.PIPE, text=True)
        wait_until(lambda: is_asleep(asking.pid), "a request to the daemon")
        server.start()
        assert asking.communicate(timeout=WATCHDOG)[0] == "text"


def test_a_file_that_is_open_for_reading_only_keeps_no_writer_on_the_host(tmp_path):
    with mounts(tmp_path) as (root, here):
        with opened(here / "program", os.O_WRONLY | os.O_CREAT) as writer:
            os.fchmod(writer, 0o755)
            os.write(writer, b"#!/bin/sh\necho run\n")
            reader = os.open(here / "program", os.O_RDONLY)
        wait_until(lambda: is_executable(root / "program"), "the end of the writer")
        os.close(reader)


def is_executable(program):
    try:
        return subprocess.run([program], capture_output=True, text=True).stdout == "run\n"
    except OSError as error:
        assert error.errno == errno.ETXTBSY
        return False


def test_o_direct_is_refused_where_the_hosts_file_system_has_none(tmp_path):
    with mounted("-t", "ramfs", "ramfs", tmp_path / "root") as root, mounts(tmp_path) as (_, here):
        (root / "file").write_bytes(b"content")
        for folder in (root, here):
            with pytest.raises(OSError, match="Invalid argument"):
                os.open(folder / "file", os.O_RDONLY | os.O_DIRECT)
        assert (here / "file").read_bytes() == b"content"


@pytest.mark.parametrize("options, most", [([], 1), ([NO_PASSTHROUGH], 2)])
def test_one_overlay_less_lies_above_a_mount_with_passthrough(tmp_path, options, most):
    with mounts(tmp_path, serve=options) as (_, here):
        for name in ("lower", "upper1", "work1", "upper2", "work2", "above1", "above2"):
            (tmp_path / name).mkdir()
        (here / "file").write_bytes(b"lower")
        made = []
        try:
            for i, lower in ((1, here), (2, tmp_path / "above1")):
                settings = f"lowerdir={lower},upperdir={tmp_path}/upper{i},workdir={tmp_path}/work{i}"
                result = subprocess.run(["mount", "-t", "overlay", "-o", settings, "overlay", tmp_path / f"above{i}"], capture_output=True)
                if result.returncode == 0:
                    made.append(tmp_path / f"above{i}")
            assert len(made) == most
            assert all((above / "file").read_bytes() == b"lower" for above in made)
        finally:
            for above in reversed(made):
                subprocess.run(["umount", "--lazy", above], check=True)
