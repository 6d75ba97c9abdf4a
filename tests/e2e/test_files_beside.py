# SPDX-License-Identifier: Apache-2.0
"""wherry run --files: a file that is changed in each way that the kernel has, by the program itself or by one without
Wherry beside it, is read as the model in memory says. tests/files/changes.hpp lists the ways."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from program import PROGRAM, environment, served

CHANGER = Path(PROGRAM).resolve().parent / "files_changer"
VERSIONS = Path(PROGRAM).resolve().parent / "files_versions"
OPERATIONS = int(os.environ.get("WHERRY_FILES_OPERATIONS", 10_000))
SEED = {name: value for name, value in os.environ.items() if name == "WHERRY_TEST_SEED"}
# Of these some must be made in a run of 10,000 operations.
NEEDED = {"pwrite", "store", "ftruncate", "O_TRUNC", "a punched hole", "splice", "sendfile", "copy_file_range"}

pytestmark = [
    pytest.mark.skipif(not CHANGER.exists(), reason="a sanitizer's build has no library that programs could load"),
    pytest.mark.timeout(3600 if "WHERRY_SOAK" in os.environ else 300),
]


def run(words, folder):
    result = subprocess.run(list(map(str, words)), cwd=folder, env=environment(WHERRY_LOG="error", **SEED), capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def check(words, path, folder, operations=OPERATIONS):
    """Each byte was right, changes were made in many ways, and reads in place."""
    result = run(words, folder)
    made = {way: int(count) for count, way in re.findall(r"^(\d+) by (.*)$", result.stdout, re.MULTILINE)}
    assert operations < 10_000 or all(made[way] > 0 for way in NEEDED), made
    unseen, reads = map(int, re.search(r"(\d+) of (\d+) reads were not seen by the kernel", result.stdout).groups())
    # auto needs some time with one descriptor, which a short run may not give it.
    assert reads > unseen and (path == "auto" or unseen > 0), result.stdout


@pytest.mark.parametrize("path", ["auto", "cache"])
def test_random_changes_by_the_reader_itself_are_read_at_once(folder, path):
    check([*served(path, folder), CHANGER, folder / "file", OPERATIONS], path, folder)


@pytest.mark.parametrize("path", ["auto", "cache"])
def test_random_changes_by_a_program_without_wherry_are_read_at_once(folder, path):
    check([CHANGER, folder / "file", OPERATIONS, "--", *served(path, folder)], path, folder)


MOUNT = {
    "overlay": "mkdir -p lower upper work merged; mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged",
    "huge": "mkdir -p upper; mount -t tmpfs -o huge=always tmpfs upper",
    "bind": "mkdir -p upper bound; mount --bind upper bound",
}
NAMES = {"overlay": ["--by", "merged/file"], "huge": [], "bind": ["--also", "bound/file"]}


@pytest.mark.parametrize("path", ["auto", "cache"])
@pytest.mark.parametrize("kind", MOUNT)
def test_random_changes_by_way_of_another_mount_are_read_at_once(tmp_path, kind, path):
    mounted = ["unshare", "-m", "sh", "-ec", MOUNT[kind] + '; "$@"', "sh"]
    if subprocess.run([*mounted, "true"], cwd=tmp_path, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    operations = OPERATIONS // 2
    words = [*mounted, CHANGER, "upper/file", operations, *NAMES[kind], "--", *served(path, tmp_path / "upper")]
    check(words, path, tmp_path, operations)


@pytest.mark.parametrize("path", ["auto", "cache"])
def test_what_was_written_before_a_random_read_began_is_read_by_each_of_several_threads(folder, path):
    result = run([VERSIONS, folder / "file", OPERATIONS // 5, *served(path, folder)], folder)
    unseen, reads = map(int, re.search(r"(\d+) of (\d+) reads were not seen by the kernel", result.stdout).groups())
    assert unseen > reads // 10, result.stdout
