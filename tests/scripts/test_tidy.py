# SPDX-License-Identifier: Apache-2.0
"""scripts/tidy: what is known to be clean is not checked again, and nothing else is passed over."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLEAN = "inline int twice(int number) { return number * 2; }\n"
FAULTY = "inline int twice(int number) { return number == number ? number * 2 : 0; }\n"
CHECK = "misc-redundant-expression"
pytestmark = pytest.mark.skipif(not (ROOT / ".venv/bin/clang-tidy").exists(), reason="needs `scripts/setup lint`")


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one source and one header, and a cache of its own."""
    root = tmp_path / "checkout"
    (root / "src").mkdir(parents=True)
    (root / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/tidy", root / "scripts")
    (root / ".venv").symlink_to(ROOT / ".venv")
    (root / ".clang-tidy").write_text(f"Checks: '-*,{CHECK}'\nHeaderFilterRegex: '/src/'\nWarningsAsErrors: '*'\n")
    (root / "src/twice.hpp").write_text(CLEAN)
    (root / "src/main.cc").write_text('#include "twice.hpp"\nint main() { return twice(0); }\n')
    configure(root)
    return root


def configure(root, flags="-std=c++20", sources=("src/main.cc",)):
    entries = [
        {"directory": str(root), "file": f"{root}/{source}", "command": f"clang++-19 {flags} -c {root}/{source}"} for source in sources
    ]
    (root / "build").mkdir(exist_ok=True)
    (root / "build/compile_commands.json").write_text(json.dumps(entries))


def git(root, *command):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *command], cwd=root, check=True)


def tidy(root, cache, *options, sources=("src/main.cc",)):
    result = subprocess.run(
        [root / "scripts/tidy", "build", *options, *sources], cwd=root, capture_output=True, text=True, timeout=120,
        env=os.environ | {"WHERRY_CACHE_DIR": str(cache)})
    assert result.stderr == ""
    return result.returncode, result.stdout


def is_known(root, cache):
    status, output = tidy(root, cache)
    assert status == 0, output
    return output.startswith("1 of 1 ")


def test_a_clean_source_is_checked_once(checkout, tmp_path):
    assert not is_known(checkout, tmp_path / "cache")
    assert is_known(checkout, tmp_path / "cache")


def test_a_finding_is_reported_each_time(checkout, tmp_path):
    (checkout / "src/twice.hpp").write_text(FAULTY)
    for _ in range(2):
        status, output = tidy(checkout, tmp_path / "cache")
        assert status == 1 and CHECK in output and "src/twice.hpp" in output


def test_a_change_of_a_header_makes_its_sources_unknown(checkout, tmp_path):
    assert not is_known(checkout, tmp_path / "cache")
    (checkout / "src/twice.hpp").write_text(FAULTY)
    assert tidy(checkout, tmp_path / "cache")[0] == 1


def test_other_flags_and_other_checks_make_a_source_unknown(checkout, tmp_path):
    assert not is_known(checkout, tmp_path / "cache")
    configure(checkout, "-std=c++20 -DOTHER")
    assert not is_known(checkout, tmp_path / "cache")
    configuration = checkout / ".clang-tidy"
    configuration.write_text(configuration.read_text().replace(CHECK, f"{CHECK},modernize-use-nullptr"))
    assert not is_known(checkout, tmp_path / "cache")


def test_a_clone_elsewhere_finds_what_another_found_clean(checkout, tmp_path):
    assert not is_known(checkout, tmp_path / "cache")
    clone = tmp_path / "elsewhere/clone"
    shutil.copytree(checkout, clone, symlinks=True)
    configure(clone)
    assert is_known(clone, tmp_path / "cache")


def test_a_record_that_is_damaged_is_no_record(checkout, tmp_path):
    assert not is_known(checkout, tmp_path / "cache")
    (record,) = (tmp_path / "cache/tidy").iterdir()
    record.write_text("{")
    assert not is_known(checkout, tmp_path / "cache")


def test_what_time_did_not_suffice_for_is_counted_and_not_taken_for_clean(checkout, tmp_path):
    status, output = tidy(checkout, tmp_path / "cache", "--seconds", "0")
    assert status == 0 and "1 of 1 sources were not checked within 0 s" in output
    assert not is_known(checkout, tmp_path / "cache")


def test_sources_that_changed_last_are_checked_first(checkout, tmp_path):
    names = ["first", "second", "third"]
    for name in names:
        (checkout / f"src/{name}.cc").write_text("int main() {}\n")
        (checkout / f"src/{name}.hpp").write_text(CLEAN)
    configure(checkout, sources=[f"src/{name}.cc" for name in names])
    git(checkout, "init", "--quiet")
    for changed in ["src/third.cc", "src/first.cc", "src/first.hpp", "src/second.hpp"]:
        git(checkout, "add", changed)
        git(checkout, "commit", "--quiet", "--message", changed)
    _, output = tidy(checkout, tmp_path / "cache", "--jobs", "1", sources=[f"src/{name}.cc" for name in names])
    assert re.findall(r"clang-tidy src/(\w+)\.cc", output) == ["second", "first", "third"]
