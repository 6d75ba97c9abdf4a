# SPDX-License-Identifier: Apache-2.0
"""wherry collect: what is said to be stored survives a power failure, and what a file system reports late is heard."""

import os
import re
import shutil
import signal
import subprocess

import pytest
from collecting import WATCHDOG, Collector, listing, make_tree, wait_until
from mounting import mounted, strange_file_system
from program import wherry

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")


def many_files(folder, count, size):
    folder.mkdir(parents=True)
    for index in range(count):
        (folder / f"{index}").write_bytes(os.urandom(size))
    return folder


@as_root
@pytest.mark.parametrize("options", [[], ["--no-sync"]], ids=["durable", "no-sync"])
def test_an_error_at_close_refuses_the_file_as_cp_does(tmp_path, transport, options):
    (tmp_path / "file").write_text("content")
    with strange_file_system(tmp_path / "fuse", "flush=ENOSPC") as (mount, _):
        assert subprocess.run(["cp", tmp_path / "file", mount / "copy"], capture_output=True).returncode == 1
        with Collector(mount / "into", transport, "--expect", 1, *options) as collector:
            shipped = collector.ship(tmp_path / "file")
            status, summary = collector.finish()
        assert (shipped.returncode, status) == (1, 1)
        assert "the collector refused file: No space left on device" in shipped.stderr and "verified" not in shipped.stdout
        assert summary["files"] == 0 and os.listdir(mount / "into") == []


@as_root
@pytest.mark.parametrize("options, refused", [([], True), (["--no-sync"], False)], ids=["durable", "no-sync"])
def test_an_error_of_fsync_refuses_the_file_unless_nobody_asks(tmp_path, options, refused):
    (tmp_path / "file").write_text("content")
    with strange_file_system(tmp_path / "fuse", "fsync=EIO") as (mount, _):
        with Collector(mount / "into", "tcp", "--expect", 1, *options) as collector:
            shipped = collector.ship(tmp_path / "file")
            status, summary = collector.finish()
        assert (shipped.returncode, status) == ((1, 1) if refused else (0, 0)), shipped.stderr
        assert ("the collector refused file: Input/output error" in shipped.stderr) == refused
        assert shipped.stdout.startswith("sent 1 file") == refused
        assert summary["durable"] == (not options) and os.listdir(mount / "into") == ([] if refused else ["file"])


@as_root
def test_a_file_served_by_a_program_is_flushed_by_it_before_it_gets_its_name(tmp_path, transport):
    many_files(tmp_path / "tree", 5, 1000)
    with strange_file_system(tmp_path / "fuse") as (mount, asked):
        with Collector(mount / "into", transport, "--expect", 1) as collector:
            assert collector.ship(tmp_path / "tree").returncode == 0
            assert collector.finish()[0] == 0
        assert listing(mount / "into/tree").keys() == listing(tmp_path / "tree").keys()
        done = [(operation, name) for operation, name in asked() if operation != "flush" and name]
    files = [operation for operation, name in done if name in "01234"]
    assert files == ["fsync", "rename"] * 5
    # The names follow: in the tree, and that of the tree itself; then the tree's time.
    directories = [each for each in done if each[0] == "fsyncdir"]
    assert directories == [("fsyncdir", "into"), ("fsyncdir", "tree"), ("fsyncdir", "tree")]
    assert done.index(("fsyncdir", "into")) > max(done.index(("rename", name)) for name in "01234")


@as_root
def test_a_directory_that_cannot_be_flushed_is_no_success(tmp_path):
    (tmp_path / "file").write_text("content")
    with strange_file_system(tmp_path / "fuse", "fsyncdir=EIO") as (mount, _):
        (mount / "into").mkdir()
        with Collector(mount / "into", "tcp", "--expect", 1) as collector:
            shipped = collector.ship(tmp_path / "file")
            assert (shipped.returncode, collector.finish()[0]) == (1, 1)
        refused = wherry("collect", "--listen", "tcp://127.0.0.1:0", "--into", mount / "new")
    assert "a power failure may undo this session" in shipped.stderr
    assert "flush the directory above" in refused.stderr and "; choose another --into, or make it beforehand" in refused.stderr


@as_root
def test_each_file_and_directory_on_an_overlay_is_flushed(tmp_path):
    """syncfs writes them, but the errors of doing so are the upper file system's, and told by fsync alone."""
    many_files(tmp_path / "tree", 5, 1000)
    for name in ("lower", "upper", "work"):
        (tmp_path / name).mkdir()
    layers = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    with mounted("-t", "overlay", "-o", layers, "none", tmp_path / "into"):
        with traced_collector(tmp_path, "tcp", "fsync,linkat,rename,renameat") as collector:
            assert collector.ship(tmp_path / "tree").returncode == 0
            assert collector.finish()[0] == 0
        assert listing(tmp_path / "into/tree") == listing(tmp_path / "tree")
    calls = completed_calls(tmp_path / "trace")
    assert calls.count("fsync") >= 5 + 2 and calls[0] == calls[-1] == "fsync"


@as_root
def test_what_was_stored_is_on_the_disk(tmp_path, transport):
    """A disk's image as a power failure would leave it: at some moment, and when the shipper was told that all is well."""
    tree = many_files(tmp_path / "tree", 600, 3000)
    make_tree(tree / "odd")
    image = tmp_path / "image"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, capture_output=True)
    with mounted("-o", "loop,commit=3000", image, tmp_path / "disk") as disk:
        with Collector(disk / "into", transport, "--expect", 1) as collector:
            shipper = collector.start_ship(tree)
            wait_until(lambda: (disk / "into/tree").is_dir() and len(os.listdir(disk / "into/tree")) >= 50, "some files")
            collector.process.send_signal(signal.SIGSTOP)
            with open(disk / "another program's", "w") as file:
                os.fsync(file)
            shutil.copy(image, tmp_path / "at some moment")
            collector.process.send_signal(signal.SIGCONT)
            assert shipper.communicate(timeout=WATCHDOG) and shipper.returncode == 0
            shutil.copy(image, tmp_path / "at the end")
            assert collector.finish()[0] == 0
    with mounted("-o", "loop", tmp_path / "at some moment", tmp_path / "disk") as disk:
        names = [name for name in os.listdir(disk / "into/tree") if (disk / "into/tree" / name).is_file()]
        assert len(names) >= 50
        assert [name for name in names if (disk / "into/tree" / name).read_bytes() != (tree / name).read_bytes()] == []
    with mounted("-o", "loop", tmp_path / "at the end", tmp_path / "disk") as disk:
        assert listing(disk / "into/tree") == listing(tree)


def traced_collector(tmp_path, transport, calls, *options):
    """A collector for one shipper whose system calls go to the file `trace`."""
    trace = ["strace", "-f", "-qq", "-o", tmp_path / "trace", "-e", f"trace={calls}"]
    if subprocess.run([*trace, "true"], capture_output=True).returncode != 0:
        pytest.skip("tracing is not permitted here")
    # Leaks are looked for by tracing, too.
    sanitizer = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    return Collector(tmp_path / "into", transport, "--expect", 1, *options, command=trace, env=sanitizer)


def completed_calls(trace):
    """The names of the calls that succeeded, in order."""
    return re.findall(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed>).*= 0$", trace.read_text(), re.MULTILINE)


def test_many_small_files_share_flushes(tmp_path, transport):
    system = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], check=True, capture_output=True, text=True).stdout.strip()
    if system not in ("ext2/ext3", "xfs", "btrfs", "f2fs", "tmpfs"):
        pytest.skip(f"on {system} each is flushed by itself")
    tree = many_files(tmp_path / "tree", 1000, 100)
    with traced_collector(tmp_path, transport, "syncfs,fsync,fdatasync,linkat") as collector:
        assert collector.ship(tree).returncode == 0
        assert collector.finish()[0] == 0
    calls = completed_calls(tmp_path / "trace")
    assert calls.count("linkat") == 1000
    assert 1 <= calls.count("syncfs") + calls.count("fsync") + calls.count("fdatasync") <= 500
    assert calls[0] != "linkat" and calls[-1] != "linkat"  # the last flush is for the names


def test_no_sync_asks_for_none(tmp_path):
    tree = many_files(tmp_path / "tree", 10, 100)
    with traced_collector(tmp_path, "tcp", "syncfs,fsync,fdatasync,linkat", "--no-sync") as collector:
        assert collector.ship(tree).returncode == 0
        assert collector.finish()[0] == 0
    assert set(completed_calls(tmp_path / "trace")) == {"linkat"}


def test_a_name_that_is_shipped_twice_is_in_the_end_what_came_last(tmp_path, transport):
    for folder, content in (("1", "first"), ("2", "second")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "name").write_text(content)
    os.symlink("target", tmp_path / "name")
    into = tmp_path / "into"
    with Collector(into, transport, "--expect", 2) as collector:
        assert collector.ship(tmp_path / "1/name", tmp_path / "2/name").returncode == 0
        assert (into / "name").read_text() == "second"
        assert collector.ship(tmp_path / "1/name", tmp_path / "name").returncode == 0
        assert collector.finish()[0] == 0
    assert os.readlink(into / "name") == "target" and os.listdir(into) == ["name"]
