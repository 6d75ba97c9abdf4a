# SPDX-License-Identifier: Apache-2.0
"""libzmq's own tests, aimed at wherry:// by ZMQ_TEST_AIM (adapters/zmq/patches/tests.patch). suite.txt names them, and the
few functions in them that fail; these must fail, so that the list stays true."""

import os
import re
import subprocess

import pytest
from processes import BUILD, SOURCE, environment

FAILED = re.compile(r":\d+:(\w+):FAIL")


def listed():
    """(program, the functions of it that cannot pass)"""
    for line in (SOURCE / "tests/zmq/suite.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, failing = line.partition(" but ")
            yield pytest.param(name, set(failing.split()), id=name)


@pytest.mark.parametrize("name, failing", listed())
def test_libzmqs_own(name, failing, tmp_path):
    program = BUILD / "bin" / name
    if not program.exists():
        pytest.skip("scripts/build-zmq --tests has not been run")
    # The alarm that the program sets itself is for an idle machine.
    aim = os.environ.get("ZMQ_TEST_AIM", "wherry")
    result = subprocess.run(
        [program], env=environment(tmp_path, ZMQ_TEST_AIM=aim), cwd=tmp_path, capture_output=True, text=True, timeout=180
    )
    output = result.stdout + result.stderr
    assert set(FAILED.findall(output)) == failing, output
    assert (result.returncode == 0) == (not failing), output
