# SPDX-License-Identifier: Apache-2.0
"""The examples under examples/zmq, with the wheel's pyzmq and with Debian's."""

import subprocess
import sys

import pytest
from processes import DEBIAN_PYTHON, SOURCE, all_succeed

EXAMPLES = SOURCE / "examples/zmq"


@pytest.fixture(params=["wheel", "debian"])
def interpreter(request):
    if request.param == "wheel":
        return sys.executable
    if subprocess.run([DEBIAN_PYTHON, "-c", "import zmq"], capture_output=True).returncode != 0:
        pytest.skip("Debian's python3-zmq is not installed")
    return DEBIAN_PYTHON


@pytest.mark.parametrize("bind, connect", [("wherry://*:2000", "wherry://0:2000"), ("scif://2000", "scif://0:2000")])
def test_a_pipeline_delivers_everything_in_order(processes, interpreter, bind, connect):
    push = processes.python(EXAMPLES / "push.py", bind, 2000, interpreter=interpreter)
    pull = processes.python(EXAMPLES / "pull.py", connect, 2000, interpreter=interpreter, node=1)
    outputs = all_succeed([push, pull])
    assert outputs[1] == "2000 pieces, 20000000 bytes, in order\n"


def test_subscribers_get_what_they_subscribed_to(processes, interpreter):
    publish = processes.python(EXAMPLES / "publish.py", "wherry://*:2001", 2, interpreter=interpreter)
    subscribers = [
        processes.python(EXAMPLES / "subscribe.py", "wherry://0:2001", topic, interpreter=interpreter, node=node)
        for node, topic in [(1, "pressure"), (2, "temperature")]
    ]
    outputs = all_succeed([publish, *subscribers])
    assert outputs[1] == "pressure: 100 readings from 1000 to 1099\n"
    assert outputs[2] == "temperature: 100 readings from 20 to 24\n"
