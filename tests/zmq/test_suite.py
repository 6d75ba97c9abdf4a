# SPDX-License-Identifier: Apache-2.0
"""libzmq's own tests, aimed at wherry:// by ZMQ_TEST_AIM (adapters/zmq/patches/tests.patch). suite.txt names them, and says of
those that cannot pass why; they must not pass either, so that the list stays true."""

import os
import re
import subprocess

import pytest
from processes import BUILD, SOURCE, environment

LINE = re.compile(r"(test_\w+)(?: +cannot: (.*))?$")


def listed():
    text = (SOURCE / "tests/zmq/suite.txt").read_text()
    return [LINE.match(line).groups() for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("name, reason", listed(), ids=[name for name, _ in listed()])
def test_libzmqs_own(name, reason, tmp_path):
    program = BUILD / "bin" / name
    if not program.exists():
        pytest.skip("scripts/build-zmq --tests has not been run")
    aim = os.environ.get("ZMQ_TEST_AIM", "wherry")
    result = subprocess.run(
        [program], env=environment(tmp_path, ZMQ_TEST_AIM=aim), cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    if reason is None:
        assert result.returncode == 0, result.stdout + result.stderr
    else:
        assert result.returncode != 0, f"{name} passes; suite.txt says that it cannot: {reason}"
