# SPDX-License-Identifier: Apache-2.0
"""wherry run --files: each call that is hooked has the kernel's result, error and offset, on each kind of descriptor and
name, with good and bad arguments. A native run is what each is compared with, line for line."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from program import PROGRAM, environment

CALLS = Path(PROGRAM).resolve().parent / "files_native_calls"

pytestmark = pytest.mark.skipif(not CALLS.exists(), reason="a sanitizer's build has no library that programs could load")


@pytest.fixture(params=["disk", "tmpfs"])
def folder(request, tmp_path):
    if request.param == "disk":
        yield tmp_path
        return
    made = Path(tempfile.mkdtemp(prefix="wherry-test-", dir="/dev/shm"))
    yield made
    shutil.rmtree(made)


def answers(folder, *before):
    """What the program prints, in the same folder each time: names have a share in it."""
    own = folder / "own"
    own.mkdir()
    result = subprocess.run([*map(str, before), CALLS, own], env=environment(WHERRY_LOG="error"), capture_output=True, text=True)
    shutil.rmtree(own)
    lines = result.stdout.splitlines()
    assert (result.returncode, lines[-1:]) == (0, ["done"]), (result.returncode, lines[-2:], result.stderr)
    return lines


@pytest.mark.parametrize("path", ["kernel", "cache", "auto"])
def test_each_call_on_each_descriptor_has_the_kernels_result_error_and_offset(folder, path):
    native = answers(folder)
    assert sum("Bad file descriptor" in line for line in native) > 1000
    assert answers(folder, PROGRAM, "run", "--files", folder, "--file-path", path, "--") == native
