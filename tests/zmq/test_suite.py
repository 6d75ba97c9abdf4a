# SPDX-License-Identifier: Apache-2.0
"""libzmq's own tests, aimed at wherry:// by ZMQ_TEST_AIM (adapters/zmq/patches/tests.patch). suite.txt names them, and the
few functions in them that fail; these must fail, so that the list stays true."""

import os
import re
import signal
import subprocess

import pytest
from processes import BUILD, SOURCE, environment

FAILED = re.compile(r":\d+:(\w+):FAIL")


# A client of test_security_zap gives up after 0.3 seconds. Where the machine lets the server judge it only after that, the
# server says this; where it lets it accept only after that, there is nobody to judge, and the program waits for the
# judgement until its alarm. So an alarm counts only where nothing says that the machine was that slow.
GAVE_UP_FIRST = "Ignored event (skipping any further events): 800 (err = 32"


def run(program, folder):
    # The alarm that the program sets itself is for an idle machine.
    aim = os.environ.get("ZMQ_TEST_AIM", "wherry")
    return subprocess.run(
        [program], env=environment(folder, ZMQ_TEST_AIM=aim), cwd=folder, capture_output=True, text=True, timeout=180
    )


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
    result = run(program, tmp_path)
    output = result.stdout + result.stderr
    if result.returncode == -signal.SIGALRM and GAVE_UP_FIRST in output:
        result = run(program, tmp_path)
        output += result.stdout + result.stderr
    assert set(FAILED.findall(output)) == failing, output
    assert (result.returncode == 0) == (not failing), output
