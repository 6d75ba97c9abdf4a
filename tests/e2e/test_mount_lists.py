# SPDX-License-Identifier: Apache-2.0
"""wherry mount: directories that are listed with the attributes of their files, beside the file system of this machine."""

import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from program import environment
from serving import SERVERS, enter_mount_namespace, mounts
from waiting import wait_until

FILES = 2000


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


def fill(folder):
    """Files of all types and of many lengths of names, with attributes that do not depend on the moment."""
    folder.mkdir()
    for i in range(FILES):
        name = f"{i}{'n' * (i * 7 % 240)}"
        (folder / name).write_bytes(b"x" * (i % 50))
        os.utime(folder / name, (i, i))
    (folder / "directory").mkdir()
    (folder / "directory" / "below").write_text("text")
    (folder / "link").symlink_to("directory")
    (folder / "dangling").symlink_to("nowhere")
    os.link(folder / "directory" / "below", folder / "hard")
    os.mkfifo(folder / "fifo")
    (folder / "executable").write_text("x")
    (folder / "executable").chmod(0o4711)
    for name in ("directory/below", "directory", "link", "dangling", "fifo", "executable", ""):
        os.utime(folder / name, (1, 2), follow_symlinks=False)


# What a directory itself takes on the disk is not listed: that is another thing in every directory.
LISTS = [r"ls -lA --time-style=full-iso | grep -v '^total\|^d'", "find . -size 1 -newermt @1000 | sort", "find . -type l -o -type p | sort",
         r"find . ! -type d -printf '%P %y %M %n %s %T@ %l\n' | sort", "ls -A", "ls -A -i | wc -l", "find . -name '*9' | sort", "du -a --apparent-size | wc -l"]


@SERVERS
def test_lists_are_those_of_a_native_file_system(tmp_path, serve):
    def listed(folder):
        results = []
        for script in LISTS:
            result = subprocess.run(["bash", "-c", script], cwd=folder, env=environment(LC_ALL="C", TZ="UTC"), capture_output=True, text=True)
            results.append((script, result.returncode, result.stdout, result.stderr))
        return results

    fill(tmp_path / "native")
    natively = listed(tmp_path / "native")
    with mounts(tmp_path, serve=serve) as (root, here):
        fill(root / "folder")
        assert listed(here / "folder") == natively
        for entry in os.scandir(here / "folder"):
            assert entry.inode() == entry.stat(follow_symlinks=False).st_ino == os.lstat(root / "folder" / entry.name).st_ino


def test_a_file_that_changes_after_it_was_listed_is_read_as_it_is(tmp_path):
    with mounts(tmp_path, 2) as (root, here, other):
        for i in range(10):
            (root / f"file{i}").write_bytes(b"")
        held = os.open(here / "file0", os.O_RDONLY)
        for i in range(200):
            data = str(i).encode() * (i + 1)
            assert sum(entry.stat().st_size >= 0 for entry in os.scandir(here)) == 10
            for name in ("file0", "file5"):
                ((other, root)[i % 2] / name).write_bytes(data)
            assert os.fstat(held).st_size == len(data) and os.pread(held, 10_000, 0) == data
            assert (here / "file5").read_bytes() == data
            with open(here / "file5", "rb") as file:
                assert file.seek(0, os.SEEK_END) == len(data)
        os.close(held)


def test_own_changes_are_seen_while_a_directory_is_listed(tmp_path):
    with mounts(tmp_path) as (root, here):
        # The kernel has the first names with their attributes long before the loop comes to them.
        for i in range(1000):
            (root / f"file{i:04}").write_bytes(b"old")
        for n, entry in enumerate(os.scandir(here)):
            for name in (entry.name, f"file{(n * 7) % 1000:04}"):
                size = os.stat(here / name).st_size
                with open(here / name, "ab") as file:
                    file.write(b"new")
                assert os.stat(here / name).st_size == size + 3
            if n % 10 == 0:
                os.chmod(here / entry.name, 0o600)
                assert os.stat(here / entry.name).st_mode & 0o777 == 0o600
                os.rename(here / entry.name, here / f"moved{n}")
                assert not os.path.exists(here / entry.name) and os.path.exists(here / f"moved{n}")
                os.rename(here / f"moved{n}", here / entry.name)
                assert os.path.exists(here / entry.name) and not os.path.exists(here / f"moved{n}")
        assert sorted(os.listdir(here)) == sorted(os.listdir(root)) and len(os.listdir(root)) == 1000


def test_a_name_that_was_listed_and_is_another_file_now_is_opened_as_that(tmp_path):
    with mounts(tmp_path) as (root, here):
        for i in range(100):
            (root / "file").write_text(f"old {i}")
            assert [entry.stat().st_size for entry in os.scandir(here) if entry.name == "file"] == [len(f"old {i}")]
            (root / "new").write_text(f"new {i} and longer")
            os.rename(root / "new", root / "file")
            assert (here / "file").read_text() == f"new {i} and longer"
            os.unlink(root / "file")
            with pytest.raises(FileNotFoundError):
                open(here / "file")


def test_a_path_asks_for_its_last_name_only(tmp_path):
    with mounts(tmp_path) as (root, here):
        deep = Path(*[f"folder{i}" for i in range(12)])
        (root / deep).mkdir(parents=True)
        (root / deep / "file").touch()
        os.stat(here / deep / "file")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        for _ in range(200):
            os.stat(here / deep / "file")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before < 200 * 6


def test_what_others_do_to_directories_is_seen_and_what_is_in_them_at_once(tmp_path):
    with mounts(tmp_path, 2) as (root, here, there):
        for by in (root, there):
            (by / "folder").mkdir()
            (by / "folder" / "file").write_text("old")
            assert (here / "folder" / "file").read_text() == "old"
            (by / "folder").rename(by / "moved")
            (by / "folder").mkdir()
            (by / "folder" / "file").write_text("new")
            assert (here / "folder" / "file").read_text() == "new"
            (by / "folder" / "file").unlink()
            assert not (here / "folder" / "file").exists()
            (by / "folder").rmdir()
            with pytest.raises(FileNotFoundError):
                (here / "folder" / "file").write_text("")
            (here / "folder").mkdir()
            (by / "folder").chmod(0o700)
            wait_until(lambda: (here / "folder").stat().st_mode & 0o777 == 0o700, "the mode of a directory")
            (by / "folder").rmdir()
            wait_until(lambda: not (here / "folder").exists(), "the end of a directory")
            shutil.rmtree(by / "moved")
