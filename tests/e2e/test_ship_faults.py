# SPDX-License-Identifier: Apache-2.0
"""wherry ship and wherry collect when things go wrong: who is told what, and what is left behind."""

import contextlib
import os
import signal
import subprocess

import pytest
from collecting import WATCHDOG, Collector, listing, wait_until
from mounting import mounted, strange_file_system
from other_user import NOBODY, need_other_user
from program import PROGRAM

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")


def big_file(path, megabytes):
    block = os.urandom(1 << 20)
    with open(path, "wb") as file:
        for _ in range(megabytes):
            file.write(block)
    return path


def stopped_in_mid_file(collector, path, megabytes):
    """A shipper that is stopped while the collector holds a part of its file."""
    for _ in range(20):  # a machine that is busy with something else may look away until the file is through
        shipper = collector.start_ship("--name", "victim", path)
        wait_until(lambda: shipper.poll() is not None or any(collector.pending_bytes()), "a part of the file")
        shipper.send_signal(signal.SIGSTOP)
        # What it had sent may still complete the file, unless more than a ring or socket buffer is missing.
        if shipper.poll() is None and any(0 < size < (megabytes - 32) << 20 for size in collector.pending_bytes()):
            return shipper
        shipper.send_signal(signal.SIGCONT)
        shipper.communicate(timeout=WATCHDOG)
        wait_until(lambda: (collector.into / path.name).exists(), "the file to arrive")
        (collector.into / path.name).unlink()
    raise AssertionError("never caught a shipper in the middle of its file")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_shipper_killed_in_mid_file_leaves_nothing_and_is_named(tmp_path, transport, how):
    source = big_file(tmp_path / "big", 200)
    (tmp_path / "small").write_text("small")
    with Collector(tmp_path / "into", transport) as collector:
        victim = stopped_in_mid_file(collector, source, 200)
        assert collector.ship("--name", "survivor", tmp_path / "small").returncode == 0
        victim.send_signal(how)
        victim.send_signal(signal.SIGCONT)
        victim.communicate(timeout=WATCHDOG)
        collector.wait_for_message(f"'victim' .pid {victim.pid}, node 0. died")
        wait_until(lambda: collector.pending_bytes() == [], "the part of the file to be dropped")
        status, summary = collector.stop()
    assert status == 1
    assert os.listdir(tmp_path / "into") == ["small"]
    report = next(s for s in summary["shippers"] if s["pid"] == victim.pid)
    assert (report["label"], report["status"], report["incomplete_file"], report["node"]) == ("victim", "died", "big", 0)


def test_a_collector_killed_in_mid_file_is_reported_and_leaves_nothing(tmp_path, transport):
    source = big_file(tmp_path / "big", 200)
    with Collector(tmp_path / "into", transport) as collector:
        shipper = stopped_in_mid_file(collector, source, 200)
        collector.process.kill()
        collector.process.wait()
        shipper.send_signal(signal.SIGCONT)
        output, errors = shipper.communicate(timeout=WATCHDOG)
    assert shipper.returncode == 1
    assert errors.startswith("wherry ship: ") and errors.count("\n") == 1, errors
    assert output.startswith("sent 0 files") and "incomplete: the collector answered for the first 0 of 1 path\n" in output
    assert "verified" not in output and " failed" not in output
    assert os.listdir(tmp_path / "into") == []


def test_a_collector_that_is_told_to_stop_in_mid_file_says_who_was_cut_off(tmp_path, transport):
    source = big_file(tmp_path / "big", 200)
    with Collector(tmp_path / "into", transport) as collector:
        shipper = stopped_in_mid_file(collector, source, 200)
        status, summary = collector.stop()
        shipper.send_signal(signal.SIGCONT)
        _, errors = shipper.communicate(timeout=WATCHDOG)
    assert status == 1 and summary["status"] == "incomplete"
    (report,) = [s for s in summary["shippers"] if s["pid"] == shipper.pid]
    assert (report["status"], report["incomplete_file"]) == ("interrupted", "big")
    assert shipper.returncode == 1 and errors
    assert os.listdir(tmp_path / "into") == []


@pytest.fixture
def small_disk(tmp_path):
    mount = tmp_path / "disk"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", mount], capture_output=True).returncode != 0:
        pytest.skip("mounting is not permitted here")
    yield mount
    subprocess.run(["umount", "--lazy", mount], check=True)


@as_root
def test_a_full_disk_refuses_the_file_and_the_rest_goes_on(tmp_path, transport, small_disk):
    files = tmp_path / "files"
    files.mkdir()
    (files / "1-small").write_text("small")
    big_file(files / "2-big", 20)
    (files / "3-small").write_text("small too")
    with Collector(small_disk / "into", transport, "--expect", 2) as collector:
        result = collector.ship(files / "1-small", files / "2-big", files / "3-small")
        assert result.returncode == 1
        assert "the collector refused 2-big: No space left on device" in result.stderr
        assert collector.ship("--name", "other", files / "1-small").returncode == 0
        status, summary = collector.finish()
    assert status == 1
    assert sorted(os.listdir(small_disk / "into")) == ["1-small", "3-small"]
    # The first is done when it has heard of the refusal; the collector may note its end after that of the second.
    complete, refused = sorted(summary["shippers"], key=lambda shipper: shipper["status"])
    assert (complete["label"], complete["status"], refused["status"]) == ("other", "complete", "refused")
    assert refused["failures"] == [{"path": "2-big", "error": "No space left on device"}]


def test_a_file_size_limit_is_a_refusal(tmp_path, transport):
    big_file(tmp_path / "big", 12)
    (tmp_path / "small").write_text("small")
    with Collector(tmp_path / "into", transport, "--expect", 1, command=["prlimit", f"--fsize={8 << 20}", "--"]) as collector:
        result = collector.ship(tmp_path / "big", tmp_path / "small")
        status, _ = collector.finish()
    assert (status, result.returncode) == (1, 1) and "big: File too large" in result.stderr
    assert os.listdir(tmp_path / "into") == ["small"]


def test_an_unwritable_directory_refuses_what_goes_there_and_no_more(tmp_path, open_folder):
    need_other_user(PROGRAM)
    into = os.path.join(open_folder, "into")
    os.makedirs(os.path.join(into, "closed"))
    os.chown(into, 65534, 65534)
    for folder in ("closed", "open"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").write_text("x")
    with Collector(into, "tcp", "--expect", 1, command=NOBODY) as collector:
        result = collector.ship("-C", tmp_path, "closed/file", "open/file")
        status, summary = collector.finish()
    assert (status, result.returncode) == (1, 1)
    assert "the collector refused closed/file: Permission denied" in result.stderr
    assert set(listing(into)) == {"closed", "open", "open/file"}


def test_a_directory_without_write_permission_can_be_filled_by_several_shippers(tmp_path, open_folder):
    need_other_user(PROGRAM)
    into = os.path.join(open_folder, "into")
    os.mkdir(into)
    os.chown(into, 65534, 65534)
    (tmp_path / "locked").mkdir()
    for name in ("a", "b"):
        (tmp_path / "locked" / name).write_text(name)
    os.chmod(tmp_path / "locked", 0o555)
    with Collector(into, "tcp", "--expect", 2, command=NOBODY) as collector:
        for share in (["locked", "locked/a"], ["locked/b"]):
            result = collector.ship("-C", tmp_path, "--no-recursion", *share)
            assert result.returncode == 0, result.stderr
        assert collector.finish()[0] == 0
    assert listing(into) == listing(tmp_path)


@pytest.mark.parametrize("path, reason", [("../escaped", "'..'"), ("deep/../../escaped", "'..'"), ("/{absolute}", "absolute")])
def test_a_path_that_would_leave_the_destination_is_refused(tmp_path, transport, path, reason):
    work = tmp_path / "work"
    (work / "deep").mkdir(parents=True)
    for place in (tmp_path / "escaped", work / "good", tmp_path / "absolute"):
        place.write_text("x")
    path = path.format(absolute=str(tmp_path / "absolute")[1:])
    into = tmp_path / "somewhere/into"
    into.mkdir(parents=True)
    with Collector(into, transport, "--expect", 1) as collector:
        result = collector.ship("-C", work, path, "good")
        status, summary = collector.finish()
    assert (status, result.returncode) == (1, 1) and f"the collector refused {path}" in result.stderr and reason in result.stderr
    assert os.listdir(into) == ["good"] and os.listdir(into.parent) == ["into"]
    assert summary["shippers"][0]["failures"][0]["path"] == path


@pytest.mark.parametrize("last", [True, False])
def test_a_symlink_in_the_destination_is_not_followed_out_of_it(tmp_path, transport, last):
    outside = tmp_path / "outside"
    outside.mkdir()
    into = tmp_path / "into"
    into.mkdir()
    os.symlink(outside, into / "a")
    (tmp_path / "tree/a/b").mkdir(parents=True)
    (tmp_path / "tree/a/file").write_text("x")
    (tmp_path / "tree/a/b/file").write_text("x")
    (tmp_path / "tree/good").write_text("x")
    with Collector(into, transport, "--expect", 1) as collector:
        result = collector.ship("-C", tmp_path / "tree", "a/file" if last else "a", "good")
        status, _ = collector.finish()
    assert (status, result.returncode) == (1, 1) and "through the symbolic link 'a'" in result.stderr
    assert os.listdir(outside) == [] and (into / "a").is_symlink() and (into / "good").exists()


def test_a_symlink_that_was_shipped_is_no_way_out_either(tmp_path, transport):
    outside = tmp_path / "outside"
    outside.mkdir()
    for number, make in enumerate([lambda p: os.symlink(outside, p), lambda p: p.mkdir()]):
        (tmp_path / str(number)).mkdir()
        make(tmp_path / str(number) / "x")
    (tmp_path / "1/x/file").write_text("x")
    with Collector(tmp_path / "into", transport, "--expect", 2) as collector:
        assert collector.ship("-C", tmp_path / "0", "x").returncode == 0
        assert collector.ship("-C", tmp_path / "1", "x").returncode == 1
        collector.finish()
    assert os.listdir(outside) == []


def test_things_of_another_kind_are_not_overwritten(tmp_path, transport):
    into = tmp_path / "into"
    (into / "directory/full").mkdir(parents=True)
    (into / "file").write_text("old")
    source = tmp_path / "source"
    (source / "file").mkdir(parents=True)
    (source / "directory").write_text("x")
    os.symlink("x", source / "link")
    (into / "link").mkdir()
    with Collector(into, transport, "--expect", 1) as collector:
        result = collector.ship("-C", source, "file", "directory", "link")
        status, summary = collector.finish()
    assert (status, result.returncode, len(summary["shippers"][0]["failures"])) == (1, 1, 3)
    assert (into / "file").read_text() == "old" and (into / "directory/full").is_dir() and (into / "link").is_dir()
    assert sorted(os.listdir(into)) == ["directory", "file", "link"]


IN_A_CONTAINER = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]


@as_root
def test_collectors_in_several_containers_share_a_destination(tmp_path):
    """Each is process 1, and their files wait for their names in folders: the file system has no unnamed files."""
    if subprocess.run([*IN_A_CONTAINER, "true"], capture_output=True).returncode != 0:
        pytest.skip("containers are not permitted here")
    source = big_file(tmp_path / "big", 30)
    (tmp_path / "small").write_text("small")
    with strange_file_system(tmp_path / "fuse") as (mount, _), contextlib.ExitStack() as stack:
        collectors = [stack.enter_context(Collector(mount / "into", "tcp", command=IN_A_CONTAINER)) for _ in range(2)]
        shippers = [collector.start_ship("-C", tmp_path, "big", "small") for collector in collectors]
        wait_until(lambda: len(os.listdir(mount / "into")) == 2, "both to have begun")
        late = stack.enter_context(Collector(mount / "into", "tcp", command=IN_A_CONTAINER))
        for shipper in shippers:
            _, errors = shipper.communicate(timeout=WATCHDOG)
            assert (shipper.returncode, errors) == (0, "")
        for collector in [*collectors, late]:
            collector.process.kill()  # and what is in its container
            collector.process.wait()
        assert (mount / "into/big").read_bytes() == source.read_bytes()
        with Collector(mount / "into", "tcp") as collector:
            assert collector.stop()[0] == 0
        assert sorted(os.listdir(mount / "into")) == ["big", "small"]


@as_root
def test_a_killed_collectors_staging_is_removed_by_the_next(tmp_path):
    source = big_file(tmp_path / "big", 50)
    with strange_file_system(tmp_path / "fuse") as (mount, _):
        with Collector(mount / "into", "tcp") as collector:
            shipper = collector.start_ship(source)
            wait_until(lambda: os.listdir(mount / "into"), "it to have begun")
            collector.process.kill()
            shipper.communicate(timeout=WATCHDOG)
        assert any(name.startswith(".wherry-partial.") for name in os.listdir(mount / "into"))
        with Collector(mount / "into", "tcp") as collector:
            assert collector.stop()[0] == 0
        assert os.listdir(mount / "into") == []


@as_root
def test_another_users_folder_is_not_where_files_wait(tmp_path, transport):
    into = tmp_path / "into"
    into.mkdir(mode=0o777)
    (into / "file").write_text("old")
    for name in (".wherry-partial", ".wherry-partial.0123456789abcdef0123456789abcdef"):
        (into / name).mkdir(mode=0o777)
        os.chown(into / name, 65534, 65534)
    before = {name: os.stat(into / name).st_mtime_ns for name in os.listdir(into) if name.startswith(".")}
    (tmp_path / "file").write_text("new")
    with Collector(into, transport, "--expect", 1) as collector:
        assert collector.ship(tmp_path / "file").returncode == 0  # replaced: it waits for its name for a moment
        assert collector.finish()[0] == 0
    assert (into / "file").read_text() == "new"
    assert {name: os.stat(into / name).st_mtime_ns for name in os.listdir(into) if name.startswith(".")} == before


@as_root
def test_a_mount_point_in_the_destination_is_a_folder_like_any_other(tmp_path, transport):
    source = tmp_path / "source"
    (source / "mounted/deeper").mkdir(parents=True)
    for name in ("mounted/new", "mounted/replaced", "mounted/deeper/replaced"):
        (source / name).write_text("new")
    os.symlink("new target", source / "mounted/link")
    into = tmp_path / "into"
    with mounted("-t", "tmpfs", "none", into / "mounted"):
        (into / "mounted/deeper").mkdir()
        for name in ("mounted/replaced", "mounted/deeper/replaced", "mounted/link"):
            (into / name).write_text("old")
        with Collector(into, transport, "--expect", 1) as collector:
            result = collector.ship("-C", source, "mounted")
            assert (result.returncode, result.stderr) == (0, "")
            assert collector.finish()[0] == 0
        assert listing(into) == listing(source)


def test_what_cannot_be_read_is_said_by_both_sides(tmp_path, open_folder):
    need_other_user(PROGRAM)
    for name in ("open", "secret"):
        with open(os.path.join(open_folder, name), "w") as file:
            file.write(name)
    os.chmod(os.path.join(open_folder, "secret"), 0)
    with Collector(tmp_path / "into", "tcp", "--expect", 1) as collector:
        result = collector.ship(os.path.join(open_folder, "secret"), os.path.join(open_folder, "open"), command=NOBODY)
        status, summary = collector.finish()
    assert (result.returncode, status) == (1, 1) and "secret: Permission denied" in result.stderr
    assert summary["shippers"][0]["unreadable"] == 1 and summary["files"] == 1
