# SPDX-License-Identifier: Apache-2.0
"""The demo hands over any tree that a user may name, though it changes meanwhile, and its last line is the result."""

import json
import multiprocessing
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from collecting import make_tree, wait_until
from demonstrating import DEMO, WATCHDOG, command, environment, run
from other_user import NOBODY
from program import PROGRAM

RESULT = re.compile(r"wherry: (\d+\.\d\d) GB/s, \d+\.\d times TCP \((\d+\.\d\d)\), (\d+) files verified, one round")


def result(output):
    """Files verified, as the last line tells."""
    match = RESULT.fullmatch(output.splitlines()[-1])
    assert match, output
    return int(match[3])


def files(folder, count, size=10_000):
    folder.mkdir(parents=True)
    for index in range(count):
        (folder / f"{index}").write_bytes(os.urandom(size))
    return folder


def change_for_ever(tree, seed):
    """What installers, editors and logs do to files, as fast as it goes."""
    choices = random.Random(seed)
    made = 0
    while True:
        made += 1
        path = os.path.join(tree, str(choices.randrange(5)), f"changing {choices.randrange(20)}")
        other = f"{path} {choices.randrange(3)}"
        change = choices.choice([
            lambda: Path(path).write_bytes(b"new" * choices.randrange(10_000)),
            lambda: os.truncate(path, choices.randrange(100_000)),
            lambda: os.unlink(path),
            lambda: os.rename(path, other),
            lambda: os.mkfifo(path),
            lambda: os.symlink("nowhere", path),
            lambda: Path(path, "inner").mkdir(parents=True),
            lambda: Path(path, "inner", str(made)).write_text("inner"),
            lambda: shutil.rmtree(path),
        ])
        try:
            if not os.path.exists(path) or not os.path.islink(path) and not os.path.isfile(path) and not os.path.isdir(path):
                os.unlink(path)  # or a write would wait for the reader of a pipe
        except OSError:
            pass
        try:
            change()
        except OSError:
            pass


@pytest.fixture
def changing_tree(tmp_path):
    for index in range(5):
        files(tmp_path / f"tree/{index}", 60)
    seed = int(os.environ.get("WHERRY_TEST_SEED", random.randrange(1 << 32)))
    print("seed", seed)
    process = multiprocessing.get_context("fork").Process(target=change_for_ever, args=(tmp_path / "tree", seed), daemon=True)
    process.start()
    wait_until(lambda: list((tmp_path / "tree").glob("*/changing*")), "the first change")
    yield tmp_path / "tree"
    alive = process.is_alive()
    process.kill()
    process.join()
    assert alive, "the tree stopped changing"


def test_a_tree_that_changes_all_the_time_is_handed_over_and_verified(tmp_path, changing_tree):
    done = run(changing_tree, tmp_path / "work")
    assert (done.returncode, done.stderr) == (0, "")
    assert result(done.stdout) >= 300


def test_the_last_line_is_the_result_in_a_file_too(tmp_path):
    tree = files(tmp_path / "tree", 20)
    with open(tmp_path / "output", "w") as output:
        assert run(tree, tmp_path / "work", "--json", tmp_path / "figures", stdout=output).returncode == 0
    assert result((tmp_path / "output").read_text()) == 20
    figures = json.loads((tmp_path / "figures").read_text())
    assert (figures["files"], figures["bytes"], set(figures["rounds"])) == (20, 200_000, {"wherry", "tcp"})


def test_what_is_no_file_is_left_out_and_said_and_odd_names_are_handed_over(tmp_path):
    tree = tmp_path / "tree"
    make_tree(tree)
    (tree / os.fsdecode(b"no \xff utf-8 \x1b[31m")).write_text("odd")
    with open(tree / "sparse", "wb") as sparse:
        sparse.truncate(5_000_000)
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(tree / "socket"))
    done = run(tree, tmp_path / "work")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 sockets, pipes or devices" in done.stdout
    assert result(done.stdout) == 7


def test_what_may_not_be_read_is_left_out_and_said():
    with tempfile.TemporaryDirectory(prefix="wherry-test-") as folder:  # pytest's own folders are root's alone
        os.chmod(folder, 0o755)
        tree = files(Path(folder, "tree"), 10)
        files(tree / "closed", 5).chmod(0)
        (tree / "3").chmod(0)
        Path(folder, "work").mkdir()
        os.chmod(Path(folder, "work"), 0o777)
        prefix = NOBODY if os.geteuid() == 0 else []
        if subprocess.run([*prefix, "test", "-x", PROGRAM, "-a", "-r", DEMO / "hand_over.py"]).returncode != 0:
            pytest.skip("another user cannot reach the program")
        done = run(tree, Path(folder, "work"), prefix=prefix)
        (tree / "closed").chmod(0o700)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 not readable" in done.stdout
    assert result(done.stdout) == 9


@pytest.mark.parametrize("name", ["tree", "tree/", "./tree/../tree", "link", "link/", "-tree"])
def test_a_tree_may_be_named_in_any_way(tmp_path, name):
    files(tmp_path / "tree", 5)
    files(tmp_path / "-tree", 5)
    os.symlink("tree", tmp_path / "link")
    done = run(name, tmp_path / "work", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert result(done.stdout) == 5


def test_a_tree_may_contain_the_folder_that_the_copies_go_to(tmp_path):
    files(tmp_path / "tree", 5)
    done = run(tmp_path / "tree", tmp_path / "tree/work")
    assert (done.returncode, done.stderr) == (0, "")
    assert result(done.stdout) == 5


@pytest.mark.parametrize("tree, reason", [
    ("missing", "cannot find missing: No such file or directory"),
    ("file", "Not a directory"),
    ("circle", "circle"),
    ("empty", "empty: it holds no file that can be read"),
    ("/proc", "/proc is a file system of the kernel"),
])
def test_a_tree_without_files_is_one_clear_line(tmp_path, tree, reason):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "empty").mkdir()
    os.symlink("circle", tmp_path / "circle")
    done = run(tree, tmp_path / "work", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"demo: .*\n", done.stderr) and reason in done.stderr


def test_files_are_generated_beside_a_small_tree(tmp_path):
    done = run(files(tmp_path / "tree", 5), tmp_path / "work", "--at-least", "1000000", "--shippers", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "generated files are handed over beside it" in done.stdout
    assert result(done.stdout) == 15


def run_with_small_file_system(folder, megabytes, arguments):
    """The demo in a world of its own, where the folder is a file system of that size."""
    script = f'mount -t tmpfs -o size={megabytes}m none "$0" && exec "$@"'
    private = ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*private, "sh", "-c", script, folder, "true"], capture_output=True).returncode != 0:
        pytest.skip("mounting is not permitted here")
    done = subprocess.run([*private, "sh", "-c", script, folder, *arguments], capture_output=True, text=True, timeout=WATCHDOG,
                          env=environment() | {"TMPDIR": folder.parent})
    assert "Traceback" not in done.stderr
    return done


def test_a_part_of_a_tree_is_handed_over_where_there_is_no_room_for_all_of_it(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    tree = files(tmp_path / "tree", 20, 1_000_000)
    (tree / "0 giant").write_bytes(os.urandom(30_000_000))
    done = run_with_small_file_system(work, 32, command(tree, work))
    assert (done.returncode, done.stderr) == (0, "")
    assert 8 <= result(done.stdout) <= 12  # twice and a quarter to spare
    assert re.search(r"has room for 1\d MB twice, sent and arrived: (8|9|10|11|12) of 21 files", done.stdout)


def test_copies_that_do_not_fit_into_memory_go_to_the_temporary_folder(tmp_path):
    tree = files(tmp_path / "tree", 40, 2_000_000)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    private = ["unshare", "--mount", "--map-root-user", "sh", "-c", "mount -t tmpfs -o size=100m none /dev/shm && exec \"$@\"", "sh"]
    if subprocess.run([*private, "true"], capture_output=True).returncode != 0:
        pytest.skip("mounting is not permitted here")
    done = subprocess.run([*private, *command(tree, None)], capture_output=True, text=True, timeout=WATCHDOG,
                          env=environment() | {"TMPDIR": temporary})
    assert (done.returncode, done.stderr) == (0, "")
    assert f"in {temporary}, is what is sent" in done.stdout
    assert result(done.stdout) == 40
    assert os.listdir(temporary) == []


def test_between_two_hosts_rsync_and_tar_hand_over_the_same(tmp_path):
    tree = files(tmp_path / "tree", 20)
    (tmp_path / "tree/folder/deep").mkdir(parents=True)
    (tmp_path / "tree/folder/deep/file").write_text("deep")
    (tmp_path / "tree/link").symlink_to("nowhere")
    (tmp_path / "tree/odd\nname").write_text("odd")
    done = run(tree, tmp_path / "work", "--hosts", "2", "--json", tmp_path / "figures")
    if "cannot make two hosts" in done.stderr or "no program" in done.stderr or "libwherry-ofi" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"wherry: \d+\.\d\d GB/s, \d+\.\d times rsync \(\d+\.\d\d\) and \d+\.\d times tar \(\d+\.\d\d\), 22 files verified,"
                        r" one round", done.stdout.splitlines()[-1])
    assert set(json.loads((tmp_path / "figures").read_text())["rounds"]) == {"wherry", "rsync", "tar"}


def test_two_hosts_that_cannot_be_made_are_one_clear_line(tmp_path):
    tree = files(tmp_path / "tree", 2)
    without = tmp_path / "bin"
    without.mkdir()
    for name in ("ip", "unshare"):
        (without / name).write_text("#!/bin/sh\necho Operation not permitted >&2\nexit 1\n")
        (without / name).chmod(0o755)
    done = run(tree, tmp_path / "work", "--hosts", "2", env=environment() | {"PATH": f"{without}:{os.environ['PATH']}"})
    assert done.returncode == 1
    assert re.fullmatch(r"demo: cannot make two hosts of this machine: Operation not permitted; .*\n", done.stderr)
