# SPDX-License-Identifier: Apache-2.0
"""Other hosts: the module between hosts is found where the package is built."""

import os
import subprocess

import pytest
from peers import EXAMPLES, PROGRAM, output_of

pytestmark = pytest.mark.skipif(not (PROGRAM.parents[1] / "lib/wherry/ofi/libwherry-ofi.so").exists(),
                                reason="built without libfabric or libsodium")


def test_a_host_that_the_file_of_hosts_names_is_reached(peers, tmp_path, monkeypatch):
    (tmp_path / "hosts").write_text("127.0.0.1\n127.0.0.2\n")
    subprocess.run([PROGRAM, "key", tmp_path / "key"], check=True)
    monkeypatch.setenv("WHERRY_HOSTS", str(tmp_path / "hosts"))
    monkeypatch.setenv("WHERRY_KEY", str(tmp_path / "key"))
    monkeypatch.setenv("WHERRY_JOB", f"hosts-{os.getpid()}")
    host = peers.python(EXAMPLES / "host.py", node=0)
    output_of(peers.python(EXAMPLES / "worker.py", node=1))
    assert output_of(host) == "hello from a card, in Python\n"
