# SPDX-License-Identifier: Apache-2.0
"""scripts/check-abi: a library that kept its name may have new symbols, and no other change."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BEFORE = "struct Pair { int first; int second; };\nint sum(struct Pair* pair) { return pair->first + pair->second; }\n"
CHANGES = {
    "a new function": (BEFORE + "int twice(int number) { return 2 * number; }\n", True),
    "a function less": ("int other(int number) { return number; }\n", False),
    "another parameter": (BEFORE.replace("Pair* pair)", "Pair* pair, int more)"), False),
    "a larger struct": (BEFORE.replace("int first;", "long first;"), False),
}
pytestmark = pytest.mark.skipif(shutil.which("abidiff") is None, reason="needs `scripts/setup lint`")


def library(folder, source, soname="libpair.so.0"):
    folder.mkdir()
    (folder / "pair.c").write_text(source)
    built = folder / "libpair.so"
    subprocess.run(["cc", "-g", "-shared", "-fPIC", f"-Wl,-soname,{soname}", folder / "pair.c", "-o", built], check=True)
    return built


def check(old, new):
    return subprocess.run([ROOT / "scripts/check-abi", old, new], capture_output=True, text=True)


@pytest.mark.parametrize("change", CHANGES)
def test_what_breaks_programs_is_found_and_nothing_else(tmp_path, change):
    source, is_compatible = CHANGES[change]
    result = check(library(tmp_path / "old", BEFORE), library(tmp_path / "new", source))
    assert (result.returncode == 0) == is_compatible, result.stdout + result.stderr
    assert ("as before" in result.stdout) == is_compatible


def test_a_library_of_another_name_may_change(tmp_path):
    result = check(library(tmp_path / "old", BEFORE), library(tmp_path / "new", CHANGES["a function less"][0], "libpair.so.1"))
    assert result.returncode == 0 and "libpair.so.0 became libpair.so.1" in result.stdout
