# SPDX-License-Identifier: Apache-2.0
"""wherry top: finds the processes that move data, and is not disturbed by those that only look like it."""

import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager

import pytest
from collecting import WATCHDOG
from other_user import NOBODY, need_other_user
from program import PROGRAM, environment, wherry

PAGE_BYTES = 256 + 1023 * 256 + 108 * 64


def processes(**env):
    result = wherry("top", "--once", "--json", "--interval", "0.05", env=env)
    assert result.returncode == 0, result.stderr
    return {process["pid"]: process for process in json.loads(result.stdout)["processes"]}


def wait_until(condition, seconds=WATCHDOG):
    """What the condition returns, once it is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail("it did not happen in time")


@contextmanager
def started(*arguments, node=0, **options):
    process = subprocess.Popen(
        [PROGRAM, *map(str, arguments)],
        env=environment(WHERRY_NODE=str(node), WHERRY_JOB=f"test-top-{os.getpid()}", **options.pop("env", {})),
        **{"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, **options},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def connected_pipe(**options):
    """A listening and a connecting `wherry pipe` with 100000 bytes handed over, the stream still open."""
    with started("pipe", "--listen", "wherry://0:2001", **options) as receiver:
        with started("pipe", "wherry://0:2001", "--wait", WATCHDOG, node=1, **options) as sender:
            sender.stdin.write(b"x" * 100000)
            sender.stdin.flush()
            yield receiver, sender


def test_both_ends_of_a_stream_are_shown_with_what_they_moved():
    with connected_pipe() as (receiver, sender):

        def moved():
            seen = processes()
            if receiver.pid not in seen or sender.pid not in seen:
                return None
            ends = [[end for end in seen[pid]["endpoints"] if end["kind"] == "stream"] for pid in (sender.pid, receiver.pid)]
            complete = ends[0] and ends[1] and ends[0][0]["bytes_sent"] == ends[1][0]["bytes_received"] == 100000
            return complete and ends

        [sending], [receiving] = wait_until(moved)
        assert sending["peer"] == receiving["local"] == "wherry://0:2001"
        assert sending["peer_pid"] == receiver.pid and receiving["peer_pid"] == sender.pid
        assert sending["local"].startswith("wherry://1:") and receiving["peer"].startswith("wherry://1:")
        assert sending["send_capacity"] == receiving["receive_capacity"] >= 4096
        assert sending["fabric"] == "shm"

        assert {process["job"] for process in processes().values() if process["pid"] in (receiver.pid, sender.pid)} == {
            f"test-top-{os.getpid()}"
        }
        table = wherry("top", "--once", "--interval", "0.05").stdout
        assert f" test-top-{os.getpid()} " in table
        lines = [line.split() for line in table.splitlines()]
        assert {str(receiver.pid), str(sender.pid)} <= {words[0] for words in lines if words}


def test_a_listener_is_shown():
    with started("pipe", "--listen", "wherry://0:2002") as process:

        def listener():
            ends = processes().get(process.pid, {}).get("endpoints", [])
            return [end for end in ends if end["kind"] == "listener"]

        [end] = wait_until(listener)
        assert end["local"] == "wherry://0:2002" and end["state"] == "listens" and end["peer"] is None


def test_a_killed_process_is_shown_no_longer():
    with connected_pipe() as (receiver, sender):
        wait_until(lambda: sender.pid in processes())
        sender.send_signal(signal.SIGKILL)
        sender.wait()
        assert sender.pid not in processes()


def test_a_process_with_statistics_off_is_not_shown():
    with connected_pipe(env={"WHERRY_STATISTICS": "off"}) as (receiver, sender):
        sender.stdin.close()
        assert sender.wait(WATCHDOG) == 0
        assert receiver.pid not in processes()


def test_files_that_only_have_the_name_are_ignored():
    small = os.memfd_create("wherry.statistics")
    os.write(small, b"\xff" * 100)
    unsealed = os.memfd_create("wherry.statistics")
    os.write(unsealed, b"\xff" * PAGE_BYTES)
    try:
        assert os.getpid() not in processes()
    finally:
        os.close(small)
        os.close(unsealed)


def test_processes_of_another_user_are_left_out_quietly():
    need_other_user(PROGRAM)
    with connected_pipe() as (receiver, sender):
        wait_until(lambda: {receiver.pid, sender.pid} <= set(processes()))
        result = subprocess.run(
            [*NOBODY, PROGRAM, "top", "--once", "--json", "--interval", "0.05"],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.returncode == 0 and result.stderr == ""
        assert not {receiver.pid, sender.pid} & {process["pid"] for process in json.loads(result.stdout)["processes"]}


def test_it_goes_on_showing_while_processes_come_and_go():
    with subprocess.Popen(
        [PROGRAM, "top", "--json", "--interval", "0.05"], env=environment(), stdout=subprocess.PIPE, text=True
    ) as top:
        seen = set()
        for _ in range(3):
            with connected_pipe() as (receiver, sender):
                while not {receiver.pid, sender.pid} <= seen:
                    seen |= {process["pid"] for process in json.loads(top.stdout.readline())["processes"]}
        assert top.poll() is None
        top.terminate()
        top.stdout.close()


def test_it_ends_when_nobody_reads_its_output():
    with subprocess.Popen([PROGRAM, "top", "--interval", "0.05"], env=environment(), stdout=subprocess.PIPE) as top:
        top.stdout.readline()
        top.stdout.close()
        assert top.wait(WATCHDOG) == -signal.SIGPIPE


def test_an_interval_out_of_range_is_a_usage_error():
    assert wherry("top", "--once", "--interval", "0").returncode == 2
