# SPDX-License-Identifier: Apache-2.0
"""wherry run --files: each call that is hooked has the kernel's result, error and offset, on each kind of descriptor and
name, with good and bad arguments. A native run is what each is compared with, line for line."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from program import PROGRAM, environment, served

CALLS = Path(PROGRAM).resolve().parent / "files_native_calls"
TRUNCATIONS = CALLS.parent / "files_native_truncations"
TWO_ATFORKS = CALLS.parent / "files_two_atforks"
SLOW_ATFORK = CALLS.parent / "libfiles_slow_atfork.so"

pytestmark = pytest.mark.skipif(not CALLS.exists(), reason="a sanitizer's build has no library that programs could load")


def lines_of(*words):
    result = subprocess.run(list(map(str, words)), env=environment(WHERRY_LOG="error"), capture_output=True, text=True)
    lines = result.stdout.splitlines()
    assert (result.returncode, lines[-1:]) == (0, ["done"]), (result.returncode, lines[-2:], result.stderr)
    return lines


def answers(folder, *before):
    """What the program prints, in the same folder each time: names have a share in it."""
    own = folder / "own"
    own.mkdir()
    lines = lines_of(*before, CALLS, own)
    shutil.rmtree(own)
    return lines


@pytest.mark.parametrize("path", ["kernel", "cache", "auto"])
def test_each_call_on_each_descriptor_has_the_kernels_result_error_and_offset(folder, path):
    native = answers(folder)
    assert sum("Bad file descriptor" in line for line in native) > 1000
    assert answers(folder, *served(path, folder)) == native


@pytest.mark.parametrize("path", ["cache", "auto"])
@pytest.mark.parametrize("place", ["disk", "tmpfs"])
def test_a_file_that_this_program_or_its_child_has_emptied_ends_there_at_once(tmp_path, place, path):
    # Not in a folder of its own there: shm_open knows none.
    folder = tmp_path if place == "disk" else Path("/dev/shm")
    file = folder / f"wherry-test-truncations-{os.getpid()}"
    try:
        assert lines_of(*served(path, folder), TRUNCATIONS, file) == lines_of(TRUNCATIONS, file)
    finally:
        file.unlink(missing_ok=True)


def test_a_handler_of_forks_comes_behind_the_librarys_own(folder):
    # It may close files in a child, which must not wait for a thread that only the parent has.
    result = subprocess.run([*served("auto", folder), TWO_ATFORKS], env=environment(LD_PRELOAD=SLOW_ATFORK), capture_output=True, text=True, timeout=100)
    order = result.stdout.split()
    assert (result.returncode, order[0], order.count("program")) == (0, "library", 2), (order, result.stderr)
