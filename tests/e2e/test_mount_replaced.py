# SPDX-License-Identifier: Apache-2.0
"""wherry mount: files whose names others remove, or give to other files."""

import os
import subprocess

import pytest
from serving import SERVERS, enter_mount_namespace, mounts


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


@SERVERS
def test_a_file_that_is_open_is_opened_again_whatever_became_of_its_name(tmp_path, serve):
    with mounts(tmp_path, 2, serve=serve) as (root, here, there):
        for by in (root, here, there):
            for change in (lambda name: (by / name).unlink(), lambda name: (by / name).rename(by / "moved"), lambda name: (by / "moved").rename(by / name)):
                (by / "moved").write_text("other")
                file = os.open(here / "file", os.O_RDWR | os.O_CREAT)
                os.write(file, b"text")
                change("file")
                again = os.open(f"/proc/self/fd/{file}", os.O_RDWR | os.O_APPEND)
                assert os.write(again, b" and more") == 9 and os.pread(file, 100, 0) == b"text and more"
                os.close(again)
                os.close(file)
                (by / "moved").unlink(missing_ok=True)
                (by / "file").unlink(missing_ok=True)


@SERVERS
def test_an_open_by_a_name_that_a_list_has_kept_is_of_the_file_that_has_the_name(tmp_path, serve):
    with mounts(tmp_path, serve=serve) as (root, here):
        for i in range(10):
            (root / "log").write_text("old")
            subprocess.run(["ls", "-l", here], stdout=subprocess.DEVNULL, check=True)
            kept = os.open(here / "log", os.O_RDWR)
            (root / "log").rename(root / "rotated")
            (root / "log").write_text("new")
            with open(here / "log", "w" if i % 2 else "a") as log:
                log.write("est")
            assert (root / "rotated").read_text() == "old" and (root / "log").read_text() == ("est" if i % 2 else "newest")
            assert os.pread(kept, 10, 0) == b"old"
            os.close(kept)
