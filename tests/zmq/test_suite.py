# SPDX-License-Identifier: Apache-2.0
"""libzmq's own tests, aimed at wherry:// by ZMQ_TEST_AIM (adapters/zmq/patches/tests.patch). suite.txt names them, and the
few functions in them that fail; these must fail, so that the list stays true."""

import os

import pytest
from own_tests import own_test
from processes import BUILD, SOURCE


def listed():
    """(program, the functions of it that cannot pass)"""
    for line in (SOURCE / "tests/zmq/suite.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, failing = line.partition(" but ")
            yield pytest.param(name, set(failing.split()), id=name)


@pytest.mark.parametrize("name, failing", listed())
def test_libzmqs_own(name, failing, tmp_path):
    if not (BUILD / "bin" / name).exists():
        pytest.skip("scripts/build-zmq --tests has not been run")
    own_test(name, tmp_path, failing, ZMQ_TEST_AIM=os.environ.get("ZMQ_TEST_AIM", "wherry"))
