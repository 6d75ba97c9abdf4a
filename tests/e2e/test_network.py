# SPDX-License-Identifier: Apache-2.0
"""Programs on two hosts by addresses that name the network: two network namespaces that a cable joins (docs/network.md)."""

import hashlib
import os
import shutil
import signal

import pytest
from collecting import listing, make_tree
from two_hosts import PIPE, result


def test_a_pipe_carries_a_hundred_megabytes_whole(hosts):
    receiver = hosts.start(hosts.near, "pipe", "--listen", "wherry+ofi://*:5000", stdout=PIPE)
    sender = hosts.start(hosts.far, "pipe", "wherry+ofi://0:5000", stdin=PIPE)
    block = os.urandom(1 << 20)
    sent, received = hashlib.sha256(), hashlib.sha256()
    child = os.fork()
    if child == 0:
        receiver.stdout.close()
        for _ in range(100):
            sender.stdin.write(block)
        sender.stdin.close()
        os._exit(0)
    sender.stdin.close()
    for _ in range(100):
        sent.update(block)
    while part := receiver.stdout.read(1 << 20):
        received.update(part)
    os.waitpid(child, 0)
    assert received.digest() == sent.digest()
    assert result(sender) == (0, "") and result(receiver) == (0, "")


def test_a_tree_is_shipped_whole(hosts, tmp_path):
    make_tree(tmp_path / "tree")
    (tmp_path / "into").mkdir()
    collector = hosts.start(hosts.near, "collect", "--listen", "wherry+ofi://*:5000", "--into", tmp_path / "into", "--expect", "1")
    shipper = hosts.start(hosts.far, "ship", "--to", "wherry+ofi://0:5000", tmp_path / "tree")
    code, errors = result(shipper)
    assert code == 0, errors
    assert result(collector)[0] == 0
    assert listing(tmp_path / "tree") in [listing(p) for p in [tmp_path / "into", *(tmp_path / "into").iterdir()] if p.is_dir()]


@pytest.mark.parametrize("blow", ["kill", "cut"])
def test_a_death_is_an_error_on_the_other_side(hosts, blow):
    receiver = hosts.start(hosts.near, "pipe", "--listen", "wherry+ofi://*:5000", stdout=PIPE)
    sender = hosts.start(hosts.far, "pipe", "wherry+ofi://0:5000", stdin=PIPE)
    sender.stdin.write(b"x" * 4096)
    sender.stdin.flush()
    assert receiver.stdout.read(4096) == b"x" * 4096
    if blow == "kill":
        sender.send_signal(signal.SIGKILL)
    else:
        hosts.ip(hosts.near, "link set near0 down")
    assert result(receiver)[0] != 0
    if blow == "cut":
        sender.stdin.close()
        assert result(sender)[0] != 0


def test_without_the_key_nobody_is_let_in(hosts):
    hosts.start(hosts.near, "pipe", "--listen", "wherry+ofi://*:5000", stdout=PIPE)
    hosts.make_key("other")
    sender = hosts.start(hosts.far, "pipe", "wherry+ofi://0:5000", stdin=PIPE,
                         env={"WHERRY_KEY": str(hosts.folder / "other")})
    code, errors = result(sender)
    assert code != 0 and "key" in errors, errors


def test_the_first_connection_does_not_read_the_symbols_of_the_kernel(hosts):
    if shutil.which("strace") is None or os.path.exists("/sys/class/infiniband"):
        pytest.skip("no strace, or a host with InfiniBand, where libfabric needs them")
    receiver = hosts.start(hosts.near, "pipe", "--listen", "wherry+ofi://*:5000", stdout=PIPE)
    trace = hosts.folder / "trace"
    sender = hosts.start(hosts.far, "pipe", "wherry+ofi://0:5000", stdin=PIPE,
                         prefix=["strace", "-f", "-qq", "-e", "trace=openat", "-o", trace])
    sender.communicate(b"sent")
    assert receiver.stdout.read() == b"sent"
    assert sender.returncode == 0 and result(receiver) == (0, "")
    opened = trace.read_text()
    assert "libfabric" in opened and "kallsyms" not in opened
