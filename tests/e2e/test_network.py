# SPDX-License-Identifier: Apache-2.0
"""Programs on two hosts: two network namespaces that a cable joins (docs/network.md)."""

import hashlib
import os
import shutil
import signal
import subprocess
import uuid
from pathlib import Path

import pytest
from collecting import listing, make_tree
from program import PROGRAM, environment
from waiting import WATCHDOG

PIPE = subprocess.PIPE
MODULE = Path(PROGRAM).resolve().parent.parent / "lib/wherry/ofi/libwherry-ofi.so"
NEAR, FAR = "10.98.0.1", "10.98.0.2"


class Hosts:
    """Node 0 at NEAR and node 1 at FAR, each a namespace that a sleeping process holds."""

    def __init__(self, folder):
        self.folder, self.started = folder, []
        self.near = self.hold(["unshare", "-Urnm"])
        self.far = self.hold([*self.inside(self.near), "unshare", "-n"])
        self.ip(self.near, f"link add near0 type veth peer name far0 netns {self.far.pid}")
        for host, name, address in ((self.near, "near0", NEAR), (self.far, "far0", FAR)):
            for command in (f"addr add {address}/24 dev {name}", f"link set {name} up", "link set lo up"):
                self.ip(host, command)
        (folder / "hosts").write_text(f"{NEAR} slots=4\n{FAR} slots=4\n")
        self.job = f"test-{uuid.uuid4().hex[:12]}"
        self.make_key("key")

    def make_key(self, name):
        subprocess.run([PROGRAM, "key", self.folder / name], check=True, capture_output=True, timeout=WATCHDOG)

    @staticmethod
    def inside(holder):
        return ["nsenter", f"--user=/proc/{holder.pid}/ns/user", f"--net=/proc/{holder.pid}/ns/net",
                f"--mount=/proc/{holder.pid}/ns/mnt", "--preserve-credentials", "--"]

    def hold(self, prefix):
        holder = subprocess.Popen([*prefix, "sh", "-c", "echo in; exec sleep 1000"], stdout=PIPE, stderr=subprocess.DEVNULL,
                                  text=True)
        self.started.append(holder)
        if holder.stdout.readline() != "in\n":
            pytest.skip("network namespaces are not permitted here")
        return holder

    def ip(self, host, command):
        if subprocess.run([*self.inside(host), "ip", *command.split()], capture_output=True, timeout=WATCHDOG).returncode != 0:
            pytest.skip(f"no cable can be laid between network namespaces here: ip {command}")

    def start(self, host, *arguments, key="key", **options):
        node = "0" if host is self.near else "1"
        env = environment(WHERRY_NODE=node, WHERRY_JOB=self.job, WHERRY_KEY=str(self.folder / key),
                          WHERRY_HOSTS=str(self.folder / "hosts"))
        process = subprocess.Popen([*self.inside(host), PROGRAM, *map(str, arguments)], env=env, stderr=PIPE, **options)
        self.started.append(process)
        return process

    def end(self):
        for process in reversed(self.started):
            process.kill()
            process.wait(timeout=WATCHDOG)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()


@pytest.fixture
def hosts(tmp_path):
    if not MODULE.exists() or shutil.which("ip") is None or shutil.which("nsenter") is None:
        pytest.skip("no libwherry-ofi.so, ip or nsenter")
    made = Hosts.__new__(Hosts)
    try:
        made.__init__(tmp_path)
        yield made
    finally:
        made.end()


def result(process):
    return process.wait(timeout=WATCHDOG), process.stderr.read().decode()


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
    sender = hosts.start(hosts.far, "pipe", "wherry+ofi://0:5000", key="other", stdin=PIPE)
    code, errors = result(sender)
    assert code != 0 and "key" in errors, errors
