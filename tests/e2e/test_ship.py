# SPDX-License-Identifier: Apache-2.0
"""wherry ship and wherry collect: what is handed over arrives as it was, and both tell the truth about it."""

import json
import os
import pty
import signal
import stat
import subprocess

import pytest
from collecting import WATCHDOG, Collector, listing, make_tree, wait_until
from program import PROGRAM, environment, wherry


def test_a_tree_arrives_with_names_modes_times_symlinks_and_content(tmp_path, transport):
    make_tree(tmp_path / "tree")
    with Collector(tmp_path / "into", transport, "--expect", 1) as collector:
        shipped = collector.ship(tmp_path / "tree")
        assert shipped.returncode == 0, shipped.stderr
        status, summary = collector.finish()
    assert status == 0
    assert listing(tmp_path / "into/tree") == listing(tmp_path / "tree")
    assert os.stat(tmp_path / "into/tree").st_mtime_ns == 946684800_000000001
    assert os.listdir(tmp_path / "into") == ["tree"]
    assert (summary["files"], summary["directories"], summary["symlinks"]) == (5, 6, 3)


def test_directories_get_their_times_though_other_shippers_store_files_in_them_later(tmp_path, transport):
    make_tree(tmp_path / "tree")
    expected = listing(tmp_path)
    with Collector(tmp_path / "into", transport, "--expect", 3) as collector:
        names = sorted(name for name in expected)
        for share in (names[0::3], names[1::3], names[2::3]):  # one after the other: each finds what the last one settled
            result = collector.ship("-C", tmp_path, "--no-recursion", "-0", "--files-from", "-", input="\0".join(share))
            assert result.returncode == 0, result.stderr
        status, _ = collector.finish()
    assert status == 0
    assert listing(tmp_path / "into") == expected


def test_holes_stay_holes(tmp_path, transport):
    source = tmp_path / "sparse"
    with open(source, "wb") as file:
        file.write(b"begin")
        file.seek(3 << 30)
        file.write(b"middle")
        file.seek(5 << 30)  # beyond what 32 bits can count
        file.write(os.urandom(70_000))
        file.truncate(6 << 30)
    with Collector(tmp_path / "into", transport, "--expect", 1) as collector:
        result = collector.ship("--json", source)
        assert result.returncode == 0, result.stderr
        assert collector.finish()[0] == 0
    arrived = tmp_path / "into/sparse"
    assert arrived.stat().st_size == 6 << 30
    assert arrived.stat().st_blocks <= source.stat().st_blocks + 64
    assert json.loads(result.stdout)["bytes"] < 1 << 20
    with open(arrived, "rb") as copy, open(source, "rb") as original:
        for offset in (0, (3 << 30) - 10, (5 << 30) - 10, (6 << 30) - 10):
            copy.seek(offset)
            original.seek(offset)
            assert copy.read(80_000) == original.read(80_000)


def test_a_file_of_nothing_but_a_hole(tmp_path, transport):
    with open(tmp_path / "hole", "wb") as file:
        file.truncate(1 << 20)
    with Collector(tmp_path / "into", transport, "--expect", 1) as collector:
        assert collector.ship(tmp_path / "hole").returncode == 0
        assert collector.finish()[0] == 0
    assert (tmp_path / "into/hole").read_bytes() == bytes(1 << 20)
    assert (tmp_path / "into/hole").stat().st_blocks == 0


@pytest.mark.parametrize("ring", ["4K", "64K", "16M"])
def test_any_ring_carries_files_larger_than_itself(tmp_path, ring):
    data = os.urandom(2_500_001)
    (tmp_path / "file").write_bytes(data)
    with Collector(tmp_path / "into", "wherry", "--expect", 1, env={"WHERRY_RING": ring}) as collector:
        assert collector.ship(tmp_path / "file").returncode == 0
        assert collector.finish()[0] == 0
    assert (tmp_path / "into/file").read_bytes() == data


@pytest.mark.parametrize("path", ["/proc/version", "/proc/filesystems", "/proc/kallsyms", "/sys/kernel/mm/transparent_hugepage/enabled"])
def test_a_file_whose_content_is_not_as_long_as_it_says_arrives_as_cat_shows_it(tmp_path, transport, path):
    if not os.path.exists(path):
        pytest.skip(f"no {path} here")
    with Collector(tmp_path / "into", transport, "--expect", 1) as collector:
        result = collector.ship(path)
        assert result.returncode == 0, result.stderr
        assert collector.finish()[0] == 0
    name = os.path.basename(path)
    shown = subprocess.run(["cat", path], capture_output=True, check=True).stdout
    assert len(shown) != os.stat(path).st_size and (tmp_path / "into" / name).read_bytes() == shown


def test_a_tree_may_be_deeper_than_there_are_descriptors(tmp_path, transport):
    folder = tmp_path / "deep"
    for level in range(300):
        folder.mkdir()
        (folder / "file").write_text(str(level))
        folder = folder / "d"
    few = ["prlimit", "--nofile=100:100", "--"]
    with Collector(tmp_path / "into", transport, "--expect", 1, command=few) as collector:
        result = collector.ship(tmp_path / "deep", command=few)
        assert (result.returncode, result.stderr) == (0, "")
        status, summary = collector.finish()
    assert status == 0 and (summary["directories"], summary["files"]) == (300, 300)
    assert listing(tmp_path / "into/deep") == listing(tmp_path / "deep")


def test_files_in_more_directories_than_there_are_descriptors(tmp_path, transport):
    for index in range(200):
        (tmp_path / f"tree/{index}").mkdir(parents=True)
        (tmp_path / f"tree/{index}/file").write_text(str(index))
    few = ["prlimit", "--nofile=24:24", "--"]
    with Collector(tmp_path / "into", transport, "--expect", 1, command=few) as collector:
        result = collector.ship(tmp_path / "tree")
        assert (result.returncode, result.stderr) == (0, "")
        assert collector.finish()[0] == 0
    assert listing(tmp_path / "into/tree") == listing(tmp_path / "tree")


def test_setuid_and_setgid_are_not_taken_over(tmp_path):
    (tmp_path / "tool").write_text("")
    os.chmod(tmp_path / "tool", 0o6755)
    with Collector(tmp_path / "into", "tcp", "--expect", 1) as collector:
        assert collector.ship(tmp_path / "tool").returncode == 0
        collector.finish()
    assert stat.S_IMODE(os.stat(tmp_path / "into/tool").st_mode) == 0o755


@pytest.mark.parametrize("arguments, names", [
    (["tree"], {"tree", "tree/deep", "tree/deep/file"}),
    (["tree/"], {"tree", "tree/deep", "tree/deep/file"}),
    (["tree/."], {"deep", "deep/file"}),
    (["tree/deep/file"], {"file"}),
    (["tree/deep/.."], {"deep", "deep/file"}),
    (["-C", "tree", "deep/file"], {"deep", "deep/file"}),
    (["-C", "tree", "./deep//file"], {"deep", "deep/file"}),
    (["-C", "tree", "."], {"deep", "deep/file"}),
    (["-C", "tree", "--no-recursion", "deep"], {"deep"}),
])
def test_the_names_under_which_things_arrive(tmp_path, arguments, names):
    (tmp_path / "tree/deep").mkdir(parents=True)
    (tmp_path / "tree/deep/file").write_text("x")
    with Collector(tmp_path / "into", "tcp", "--expect", 1) as collector:
        result = collector.ship(*arguments, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        collector.finish()
    assert set(listing(tmp_path / "into")) == names


def test_what_was_there_is_replaced_whole_and_a_symlink_is_not_followed(tmp_path, transport):
    for name in ("file", "over-link"):
        (tmp_path / name).write_text("new")
    os.symlink("new-target", tmp_path / "link")
    into = tmp_path / "into"
    into.mkdir()
    (tmp_path / "outside").write_text("untouched")
    (into / "file").write_text("old and longer")
    os.symlink(tmp_path / "outside", into / "over-link")
    os.symlink("old-target", into / "link")
    with Collector(into, transport, "--expect", 1) as collector:
        result = collector.ship("-C", tmp_path, "file", "over-link", "link")
        assert result.returncode == 0, result.stderr
        assert collector.finish()[0] == 0
    assert (into / "file").read_text() == "new"
    assert (into / "over-link").read_text() == "new" and not (into / "over-link").is_symlink()
    assert os.readlink(into / "link") == "new-target"
    assert (tmp_path / "outside").read_text() == "untouched"
    assert sorted(os.listdir(into)) == ["file", "link", "over-link"]


def test_both_summaries_can_be_read_by_a_program(tmp_path, transport):
    make_tree(tmp_path / "tree")
    with Collector(tmp_path / "into", transport, "--expect", 1) as collector:
        shipper = collector.start_ship("--json", "--name", "worker 7", tmp_path / "tree")
        output, _ = shipper.communicate(timeout=WATCHDOG)
        _, collected = collector.finish()
    shipped = json.loads(output)
    data = 3_000_001 + 1 + 7 + 3
    for summary in (shipped, collected):
        assert summary["status"] == "complete" and summary["failures"] == []
        assert (summary["files"], summary["directories"], summary["symlinks"], summary["bytes"]) == (5, 6, 3, data)
        assert summary["seconds"] > 0 and summary["gigabytes_per_second"] > 0
    (session,) = collected["shippers"]
    assert session["label"] == "worker 7" and session["pid"] == shipper.pid and session["node"] == 0
    assert session["pid_vouched"] == (transport == "wherry")
    assert session["status"] == "complete" and session["incomplete_file"] is None


def test_twenty_shippers_at_once_and_the_failure_of_one_is_its_own(tmp_path, transport):
    for index in range(20):
        (tmp_path / f"tree/{index}").mkdir(parents=True)
        for number in range(20):
            (tmp_path / f"tree/{index}/{number}").write_bytes(os.urandom(number * 1000))
    with Collector(tmp_path / "into", transport, "--expect", 20) as collector:
        extra = lambda index: [tmp_path / "missing"] if index == 13 else []
        shippers = [collector.start_ship("--name", f"s{index}", tmp_path / f"tree/{index}", *extra(index)) for index in range(20)]
        for index, shipper in enumerate(shippers):
            _, errors = shipper.communicate(timeout=WATCHDOG)
            assert shipper.returncode == (1 if index == 13 else 0), errors
            assert ("missing: No such file or directory" in errors) == (index == 13)
        status, summary = collector.finish()
    assert status == 1
    assert listing(tmp_path / "into") == listing(tmp_path / "tree")
    assert {s["label"]: s["status"] for s in summary["shippers"]} == {f"s{i}": "refused" if i == 13 else "complete" for i in range(20)}


def test_what_is_neither_file_directory_nor_symlink_is_left_out_and_said(tmp_path):
    (tmp_path / "tree").mkdir()
    os.mkfifo(tmp_path / "tree/fifo")
    (tmp_path / "tree/file").write_text("x")
    with Collector(tmp_path / "into", "tcp", "--expect", 1) as collector:
        result = collector.ship(tmp_path / "tree")
        collector.finish()
    assert result.returncode == 1 and "tree/fifo: not a file, directory or symbolic link" in result.stderr
    assert set(listing(tmp_path / "into")) == {"tree", "tree/file"}


def test_a_shipper_waits_for_its_collector_as_long_as_it_was_told(tmp_path, port):
    (tmp_path / "file").write_text("x")
    address = f"tcp://127.0.0.1:{port}"
    early = subprocess.Popen([PROGRAM, "ship", "--wait", str(WATCHDOG), "--to", address, tmp_path / "file"], env=environment())
    with subprocess.Popen([PROGRAM, "collect", "-l", address, "-d", tmp_path / "into", "--expect", "1", "-q"], env=environment()) as collector:
        assert early.wait(timeout=WATCHDOG) == 0 and collector.wait(timeout=WATCHDOG) == 0
    assert wherry("ship", "--wait", 0, "--to", address, tmp_path / "file").returncode == 1


def test_a_collector_that_is_too_busy_to_accept_is_waited_for_as_long(tmp_path):
    (tmp_path / "file").write_text("x")
    with Collector(tmp_path / "into", "wherry", "--expect", 1, env={"WHERRY_CONNECT_TIMEOUT": "100"}) as collector:
        collector.process.send_signal(signal.SIGSTOP)
        shipper = collector.start_ship("--wait", WATCHDOG, tmp_path / "file")
        with pytest.raises(subprocess.TimeoutExpired):
            shipper.wait(timeout=1)
        collector.process.send_signal(signal.SIGCONT)
        _, errors = shipper.communicate(timeout=WATCHDOG)
        assert (shipper.returncode, errors, collector.finish()[0]) == (0, "", 0)


def test_nobody_listens_is_an_error_that_names_the_address(tmp_path, transport):
    address = {"tcp": "tcp://127.0.0.1:1", "wherry": "wherry://0:4711"}[transport]
    result = wherry("ship", "--wait", 0, "--to", address, tmp_path, env={"WHERRY_JOB": "nobody-here"})
    assert result.returncode == 1
    assert result.stderr.startswith("wherry ship: connect ") and result.stderr.count("\n") == 1 and address.split("//")[1] in result.stderr


@pytest.mark.parametrize("arguments", [["ship", "--frobnicate"], ["collect"], ["collect", "--into"], ["pipe"], [], ["sing"]])
def test_a_wrong_command_line_is_status_2(arguments):
    assert wherry(*arguments).returncode == 2


def test_a_port_that_is_taken_is_an_error(tmp_path, transport):
    with Collector(tmp_path / "into", transport) as collector:
        second = subprocess.run([PROGRAM, "collect", "-l", collector.address, "-d", tmp_path / "second"], env=collector.env,
                                capture_output=True, text=True, timeout=WATCHDOG)
        assert second.returncode == 1 and "Address already in use" in second.stderr
        assert collector.stop()[0] == 0


def test_an_idle_collector_that_is_told_to_stop_ends_well(tmp_path, transport):
    (tmp_path / "file").write_text("x")
    with Collector(tmp_path / "into", transport) as collector:
        assert collector.ship(tmp_path / "file").returncode == 0
        wait_until(lambda: (tmp_path / "into/file").exists(), "the file")
        status, summary = collector.finish(signal.SIGINT)
    assert status == 0 and summary["files"] == 1 and not summary["interrupted"]


def test_without_a_terminal_there_is_no_progress(tmp_path, transport):
    make_tree(tmp_path / "tree")
    with Collector(tmp_path / "into", transport, "--expect", 1) as collector:
        result = collector.ship(tmp_path / "tree")
        collector.finish()
    assert result.stderr == "" and result.stdout.count("\n") == 1 and result.stdout.startswith("5 files, 6 directories, 3 symlinks: 3.0 MB")
    assert len(collector.messages) == 2  # where it listens, and the shipment


def test_quiet_says_nothing_at_all(tmp_path):
    (tmp_path / "file").write_text("x")
    with Collector(tmp_path / "into", "tcp", "--expect", 1) as collector:
        result = collector.ship("--quiet", tmp_path / "file")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_on_a_terminal_there_is_a_progress_line_that_is_gone_at_the_end(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        for _ in range(64):
            file.write(os.urandom(1 << 20))
    leader, follower = pty.openpty()
    with Collector(tmp_path / "into", "tcp", "--expect", 1) as collector:
        # While the collector is stopped, the shipper's line is drawn however fast this machine is.
        collector.process.send_signal(signal.SIGSTOP)
        shipper = subprocess.Popen([PROGRAM, "ship", "--to", collector.address, tmp_path / "file"], env=collector.env,
                                   stderr=follower, stdout=subprocess.DEVNULL)
        os.close(follower)
        seen = b""
        while b"ship: 0 files" not in seen:
            seen += os.read(leader, 4096)
        collector.process.send_signal(signal.SIGCONT)
        while True:
            try:
                more = os.read(leader, 4096)
            except OSError:  # the terminal's other end is closed
                break
            if not more:
                break
            seen += more
        assert shipper.wait(timeout=WATCHDOG) == 0
        collector.finish()
    assert seen.endswith(b"\r\x1b[K") and b"%" in seen
