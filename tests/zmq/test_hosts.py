# SPDX-License-Identifier: Apache-2.0
"""wherry:// between two hosts of WHERRY_HOSTS, and beside them within one."""

import sys

import pytest
from processes import PROGRAM, SOURCE
from two_hosts import PIPE, result

EXAMPLES = SOURCE / "examples/zmq"


def start(hosts, host, script, *arguments):
    return hosts.spawn(host, PROGRAM, "run", "--", sys.executable, EXAMPLES / script, *arguments, stdout=PIPE)


@pytest.mark.parametrize("where", ["another host", "this host"])
def test_a_pipeline_crosses_as_it_is(hosts, where):
    there = hosts.far if where == "another host" else hosts.near
    push = start(hosts, hosts.near, "push.py", "wherry://*:2000", 1000)
    pull = start(hosts, there, "pull.py", "wherry://0:2000", 1000)
    assert pull.stdout.read() == b"1000 pieces, 10000000 bytes, in order\n"
    assert result(pull) == (0, "") and result(push) == (0, "")
