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


# Two of libzmq's programs give others 0.3 seconds for what is to have happened by then: test_security_zap's client for being
# judged, test_spec_dealer's five peers for having connected. On a busy machine that may not be enough, and the program waits
# for ever for what cannot come. So an alarm of these counts only if it rings twice; of any other it tells of a lost wake-up.
HASTY = {"test_security_zap", "test_spec_dealer"}


def run(program, folder):
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
    if result.returncode == -signal.SIGALRM and name in HASTY:
        result = run(program, tmp_path)
        output += result.stdout + result.stderr
    assert set(FAILED.findall(output)) == failing, output
    assert (result.returncode == 0) == (not failing), output
