# SPDX-License-Identifier: Apache-2.0
"""The type stubs: mypy --strict passes on the package and on the examples, and finds what is wrong."""

import os
import subprocess
import sys

import pytest
from peers import EXAMPLES, PACKAGE

pytest.importorskip("mypy")


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    cache = tmp_path_factory.mktemp("mypy")

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, *arguments],
            env={**os.environ, "MYPYPATH": str(PACKAGE)}, capture_output=True, text=True, timeout=500,
        )

    return run


def test_the_examples_are_typed(mypy):
    done = mypy(*sorted(EXAMPLES.glob("*.py")))
    assert done.returncode == 0, done.stdout


def test_the_package_is_typed(mypy):
    assert (PACKAGE / "wherry/py.typed").exists()
    done = mypy(PACKAGE / "wherry")
    assert done.returncode == 0, done.stdout


def test_what_is_wrong_is_found(mypy, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import wherry\n"
        "stream = wherry.connect('wherry://0:2000', timeout='soon')\n"
        "stream.send('text')\n"
        "message: str = stream.receive()\n"
        "frame = wherry.Publisher().loan((2, 3), 'f4')\n"
        "frame += 1\n"
        "view = memoryview(wherry.Subscriber().take())\n"
    )
    done = mypy(wrong)
    assert [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line] == ["2", "3", "4"], done.stdout
