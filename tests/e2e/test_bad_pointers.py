# SPDX-License-Identifier: Apache-2.0
"""wherry run --files: a pointer that the kernel refuses is refused, with the kernel's error, by each call that is hooked."""

import subprocess
from pathlib import Path

import pytest
from program import PROGRAM, environment

BIN = Path(PROGRAM).resolve().parent
LIBRARY = BIN.parent / "lib/wherry/files/libwherry-preload.so"
BAD_POINTERS = BIN / "files_bad_pointers"

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="a sanitizer's build has no library that programs could load")


def answers(*words):
    result = subprocess.run(list(map(str, words)), env=environment(WHERRY_LOG="error"), capture_output=True, text=True, timeout=100)
    lines = result.stdout.splitlines()
    assert (result.returncode, lines[-1:]) == (0, ["done"]), (result.returncode, lines[-2:], result.stderr)
    return lines


@pytest.mark.parametrize("path", ["kernel", "auto"])
def test_each_call_answers_a_bad_pointer_as_the_kernel_does(tmp_path, path):
    native = answers(BAD_POINTERS, tmp_path / "file")
    assert sum("EFAULT" in line for line in native) > 100
    served = answers(PROGRAM, "run", "--files", tmp_path, "--file-path", path, "--", BAD_POINTERS, tmp_path / "file")
    assert served == native
