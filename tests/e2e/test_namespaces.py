# SPDX-License-Identifier: Apache-2.0
"""Processes in containers: which namespaces must be shared to meet, and what is said where they are not (docs/containers.md)."""

import json
import os
import re
import socket
import subprocess
import uuid
from pathlib import Path

import pytest
from other_user import NOBODY, need_other_user
from program import PROGRAM, environment
from waiting import WATCHDOG, wait_until

AS_ROOT = os.geteuid() == 0
UNSHARE = ["unshare"] if AS_ROOT else ["unshare", "--user", "--map-current-user"]
OWN_NETWORK = [*UNSHARE, "--net", "--"]
OWN_ALL_BUT_NETWORK = [*UNSHARE, "--pid", "--ipc", "--uts", "--mount-proc", "--fork", "--kill-child", "--"]
CONTAINER = [*UNSHARE, "--net", "--pid", "--ipc", "--uts", "--mount-proc", "--fork", "--kill-child", "--"]


def need(prefix):
    if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("making such a namespace is not permitted here: " + " ".join(prefix))


def network_of(process="self"):
    return os.stat(f"/proc/{process}/ns/net").st_ino


class Job:
    """Programs of one job of this test's, and a listener: `wherry pipe`, which receives what one connector sends."""

    def __init__(self):
        self.name = f"test-{uuid.uuid4().hex[:12]}"
        self.env = environment(WHERRY_JOB=self.name)
        self.started = []

    def listen(self, prefix=(), port=None):
        """A listener; its address and the process that leads to its namespaces. On a port that is given it does not say where."""
        pipe = subprocess.Popen([*prefix, PROGRAM, "pipe", "--listen", f"wherry://*:{port or '*'}"], env=self.env,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(pipe)
        if port:
            name = f"/{self.name}/0:{port}\n"
            wait_until(lambda: name in Path(f"/proc/{pipe.pid}/net/unix").read_text(), "the listener")
            return f"wherry://0:{port}", pipe
        line = pipe.stderr.readline()
        assert "listening on " in line, line
        return line.split("listening on ")[1].strip(), pipe

    def run(self, *arguments, prefix=(), env=None, **options):
        return subprocess.run([*prefix, PROGRAM, *arguments], env={**self.env, **(env or {})}, capture_output=True, text=True,
                              timeout=WATCHDOG, **options)

    def send(self, address, prefix=(), env=None):
        return self.run("pipe", "--wait", "0", address, prefix=prefix, env=env, input="some data")

    def diagnose(self, address, prefix=(), env=None):
        """What doctor --peer finds, as text and as JSON: both say the same."""
        text = self.run("doctor", "--peer", address, prefix=prefix, env=env)
        parsed = self.run("doctor", "--json", "--peer", address, prefix=prefix, env=env)
        found = json.loads(parsed.stdout)
        assert text.returncode == parsed.returncode == (0 if found["reachable"] else 1), text.stderr + parsed.stderr
        assert found["found"] in text.stdout and all(other["found"] in text.stdout for other in found["elsewhere"])
        return text.stdout, found


@pytest.fixture
def job():
    own = Job()
    yield own
    for process in own.started:
        process.kill()
        process.communicate(timeout=WATCHDOG)


def inside(process):
    """The process that runs in the namespaces: unshare itself, or with --fork its child."""
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    with open(children) as listed:
        found = listed.read().split()
    return int(found[0]) if found else process.pid


def arrives(job, address, listener, prefix=()):
    sent = job.send(address, prefix=prefix)
    assert sent.returncode == 0, sent.stderr
    output, errors = listener.communicate(timeout=WATCHDOG)
    assert (output, listener.returncode) == ("some data", 0), errors


def test_a_container_that_shares_the_network_namespace_is_reached(job):
    need(OWN_ALL_BUT_NETWORK)
    address, listener = job.listen()
    arrives(job, address, listener, prefix=OWN_ALL_BUT_NETWORK)


def test_a_listener_in_a_container_is_reached_from_its_network_namespace(job):
    need(CONTAINER)
    address, listener = job.listen(prefix=CONTAINER)
    enter = ["nsenter", *([] if AS_ROOT else ["--user", "--preserve-credentials"]), "--net", "--target", str(inside(listener)), "--"]
    need(enter)
    assert job.send(address).returncode == 1
    arrives(job, address, listener, prefix=enter)


def test_in_another_network_namespace_a_connect_names_the_place_and_the_listeners(job):
    need(OWN_NETWORK)
    address, listener = job.listen()
    refused = job.send(address, prefix=OWN_NETWORK)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1
    where = re.search(rf"nobody listens on port \d+ of node 0 as user {os.geteuid()}, job '{job.name}', network namespace (\d+); ",
                      refused.stderr)
    assert where and int(where[1]) != network_of()
    assert re.search(rf", or, to reach the one in network namespace {network_of()} \(that of process \d+\), "
                     r"share that network namespace \(docs/containers.md\)$", refused.stderr.strip())


def test_in_a_container_of_its_own_a_connect_says_what_both_sides_must_share(job):
    need(CONTAINER)
    address, _ = job.listen()
    refused = job.send(address, prefix=CONTAINER)
    assert refused.returncode == 1
    assert refused.stderr.strip().endswith(
        "start the listener first, as the same user, with the same WHERRY_JOB and in the same network namespace")


def test_in_a_container_doctor_says_for_which_processes_wherry_works(job):
    need(CONTAINER)
    result = job.run("doctor", prefix=CONTAINER)
    assert result.returncode == 0, result.stdout + result.stderr
    network = re.search(rf"reach +user {os.geteuid()}, job '{job.name}', network namespace (\d+) \(not the initial one\)", result.stdout)
    assert network and int(network[1]) != network_of()
    assert "processes in other network namespaces are not reached" in result.stdout
    assert re.search(r"namespaces +pid \d+ \(not the initial one\), .*ipc \d+ \(not the initial one\)", result.stdout)
    conclusion = result.stdout.strip().splitlines()[-1]
    assert conclusion.startswith(f"Wherry works here for user {os.geteuid()}, job '{job.name}', network namespace {network[1]};")


def test_a_reachable_peer_is_named_and_does_not_notice(job):
    address, listener = job.listen()
    for _ in range(3):
        text, found = job.diagnose(address)
        assert found["reachable"] and found["process"] == listener.pid
        assert f"is reachable for user {os.geteuid()}, job '{job.name}', network namespace {network_of()}" in text
    # It accepts one stream only: that of a look would have been it.
    arrives(job, address, listener)


def test_a_peer_in_another_pid_namespace_is_reached_with_a_remark(job):
    need(OWN_ALL_BUT_NETWORK)
    address, listener = job.listen(prefix=OWN_ALL_BUT_NETWORK)
    _, found = job.diagnose(address)
    assert found["reachable"] and found["process"] == inside(listener), "the outer namespace sees the inner one's processes"
    address, _ = job.listen()
    text, found = job.diagnose(address, prefix=OWN_ALL_BUT_NETWORK)
    assert found["reachable"] and found["process"] == 0
    assert "in another pid namespace" in text and "large messages go through the ring" in text


def test_a_peer_in_another_network_namespace_is_found_there(job):
    need(OWN_NETWORK)
    address, listener = job.listen(prefix=OWN_NETWORK)
    text, found = job.diagnose(address)
    # Tests that run meanwhile may listen on this port in jobs of their own.
    assert {"found": f"a listener is there in network namespace {network_of(inside(listener))} (that of process {inside(listener)})",
            "advice": "share that network namespace (docs/containers.md)"} in found["elsewhere"]
    assert "is not reachable" in text and "start the listener first" in text


def test_a_peer_in_another_job_is_found_there(job):
    address, _ = job.listen(port=2992)
    _, found = job.diagnose(address, env={"WHERRY_JOB": "another"})
    assert {"found": f"a listener is there in job '{job.name}'", "advice": f"set WHERRY_JOB={job.name}"} in found["elsewhere"]


def test_a_peer_of_another_user_is_found_there(job):
    need_other_user(PROGRAM)
    address, _ = job.listen(prefix=NOBODY, port=2991)
    _, found = job.diagnose(address)
    assert {"found": "a listener is there of user 65534", "advice": "run both sides as one user"} in found["elsewhere"]


def test_a_peer_that_differs_in_all_is_told_what_to_change_of_all(job):
    need_other_user(PROGRAM)
    need(OWN_NETWORK)
    address, listener = job.listen(prefix=[*OWN_NETWORK, *NOBODY], port=2990)
    _, found = job.diagnose(address, env={"WHERRY_JOB": "another"})
    (other,) = [other for other in found["elsewhere"] if job.name in other["found"]]
    assert other["found"].startswith(f"a listener is there of user 65534 in job '{job.name}' in ")
    assert str(inside(listener)) in other["found"]
    assert other["advice"] == (f"run both sides as one user, set WHERRY_JOB={job.name}, "
                               "share that network namespace (docs/containers.md)")


def test_a_peer_that_is_nowhere_is_said_to_be_missing(job):
    text, found = job.diagnose("wherry://0:2989")
    assert not found["reachable"] and found["found"] == "nobody listens there"
    assert found["advice"].startswith("start the listener first") and "-> " in text


def test_in_a_container_doctor_sends_to_the_host_whose_processes_it_cannot_see(job):
    need(CONTAINER)
    address, _ = job.listen()
    text, found = job.diagnose(address, prefix=CONTAINER)
    assert found["elsewhere"] == []
    assert "run this command on the host" in text


def test_a_peer_that_does_not_accept_is_told_from_one_that_is_missing(job):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        name = f"\0wherry/{os.geteuid()}/{job.name}/0:2988"
        listener.bind(name)
        listener.listen(0)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connector:
            connector.connect(name)  # all that its queue takes
            text, found = job.diagnose("wherry://0:2988")
    assert not found["reachable"]
    assert "somebody listens there, and does not accept" in text and "accept faster" in found["advice"]


@pytest.mark.parametrize("address, said", [("wherry://0:*", "name the node and the port"), ("wherry+inproc://0:1", "the fabric shm")])
def test_an_address_that_cannot_be_diagnosed_is_an_error(job, address, said):
    result = job.run("doctor", "--peer", address)
    assert result.returncode == 1 and said in result.stderr
