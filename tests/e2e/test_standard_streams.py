# SPDX-License-Identifier: Apache-2.0
"""Every program of ours with standard input, output or error closed, and with a standard output that is full: it does as
`cat` does. No file or socket of its own gets the numbers 0 to 2, and what could not be said is in the exit status."""

import contextlib
import os
import subprocess
import uuid

import pytest
from collecting import WATCHDOG, Collector
from program import PROGRAM, environment
from waiting import wait_until

PIPE = subprocess.PIPE
NUMBERS = [0, 1, 2]
SAYS = {
    "doctor": ["doctor"],
    "doctor in JSON": ["doctor", "--json"],
    "config": ["config"],
    "config in JSON": ["config", "--json"],
    "top": ["top", "--once", "--interval", "0.05"],
    "top in JSON": ["top", "--once", "--json", "--interval", "0.05"],
    "bench": ["bench", "stream", "--help"],
    "help": ["--help"],
    "help of a subcommand": ["ship", "--help"],
}


@pytest.fixture
def address(transport, port):
    return "wherry://0:2000" if transport == "wherry" else f"tcp://127.0.0.1:{port}"


def without(*numbers):
    def close():
        for number in numbers:
            os.close(number)

    return close


def run(arguments, **options):
    return subprocess.run([PROGRAM, *arguments], env=environment(WHERRY_JOB="nobody-here"), timeout=WATCHDOG, text=True, **options)


@pytest.mark.parametrize("arguments", SAYS.values(), ids=SAYS.keys())
def test_a_full_standard_output_is_a_failure_as_for_cat(arguments):
    with open("/dev/full", "w") as full:
        assert subprocess.run(["cat", "/proc/version"], stdout=full, stderr=PIPE).returncode == 1
        done = run(arguments, stdout=full, stderr=PIPE)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert "No space left on device" in done.stderr or "a part of it was lost" in done.stderr


@pytest.mark.parametrize("arguments", SAYS.values(), ids=SAYS.keys())
def test_a_closed_standard_output_is_a_failure_as_for_cat(arguments):
    assert subprocess.run(["cat", "/proc/version"], stderr=PIPE, preexec_fn=without(1)).returncode == 1
    done = run(arguments, stderr=PIPE, preexec_fn=without(1))
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done


@pytest.mark.parametrize("arguments", SAYS.values(), ids=SAYS.keys())
def test_closed_input_and_error_are_missed_by_nobody_who_does_not_use_them(arguments):
    done = run(arguments, stdout=PIPE, preexec_fn=without(0, 2))
    assert done.returncode == 0 and done.stdout


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_summary_that_cannot_be_written_is_a_failure(tmp_path, transport, options):
    (tmp_path / "file").write_text("x")
    with Collector(tmp_path / "into", transport, "--expect", 1) as collector, open("/dev/full", "w") as full:
        shipper = subprocess.run([PROGRAM, "ship", "--to", collector.address, *options, tmp_path / "file"], env=collector.env,
                                 stdout=full, stderr=PIPE, text=True, timeout=WATCHDOG)
        assert collector.finish()[0] == 0
    assert shipper.returncode == 1 and "write standard output: No space left on device" in shipper.stderr


def numbers_taken(pid):
    """What the numbers 0 to 2 are in a process, of what was closed when it started."""
    taken = {}
    for number in NUMBERS:
        try:
            taken[number] = os.readlink(f"/proc/{pid}/fd/{number}")
        except FileNotFoundError:
            pass
    return taken


@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]], ids=str)
def test_a_collector_gives_nothing_of_its_own_the_numbers_that_were_closed(tmp_path, address, closed):
    into = tmp_path / "into"
    (tmp_path / "file").write_text("content")
    job = environment(WHERRY_JOB=f"test-{uuid.uuid4().hex[:12]}")
    with subprocess.Popen([PROGRAM, "collect", "-l", address, "-d", into, "--expect", "1", "--quiet"], env=job, stdout=PIPE, stderr=PIPE,
                          preexec_fn=without(*closed)) as collector, contextlib.ExitStack() as stack:
        stack.callback(collector.kill)
        wait_until(into.is_dir, "the destination")
        assert {taken for number, taken in numbers_taken(collector.pid).items() if number in closed} <= {"/"}
        shipper = subprocess.run([PROGRAM, "ship", "--wait", str(WATCHDOG), "--to", address, "--quiet", tmp_path / "file"], env=job,
                                 timeout=WATCHDOG, preexec_fn=without(*closed))
        assert (shipper.returncode, collector.wait(timeout=WATCHDOG)) == (0, 0)  # quiet: nothing was to be said
        assert (into / "file").read_text() == "content"


def test_a_list_of_files_from_a_closed_standard_input_is_an_error(tmp_path, transport):
    with Collector(tmp_path / "into", transport) as collector:
        done = subprocess.run([PROGRAM, "ship", "--to", collector.address, "--files-from", "-"], env=collector.env, stdout=PIPE,
                              stderr=PIPE, text=True, timeout=WATCHDOG, preexec_fn=without(0))
    assert done.returncode == 1 and "read standard input: Bad file descriptor" in done.stderr


@pytest.fixture
def start_pipes(address):
    """Starts a receiver and a sender with these options of Popen. Both are killed at the end."""
    with contextlib.ExitStack() as stack:
        def start(receiver_options, sender_options):
            job = environment(WHERRY_JOB=f"test-{uuid.uuid4().hex[:12]}")
            commands = [["--listen", address], ["--wait", str(WATCHDOG), address]]
            both = [subprocess.Popen([PROGRAM, "pipe", *command], env=job, **options)
                    for command, options in zip(commands, (receiver_options, sender_options))]
            for process in both:
                stack.callback(process.wait)
                stack.callback(process.kill)
            return both

        yield start


@pytest.mark.parametrize("also", [[], [1], [1, 2]], ids=str)
def test_a_pipe_whose_input_is_closed_sends_nothing_and_fails_on_both_sides(start_pipes, also):
    assert subprocess.run(["cat"], stdout=PIPE, stderr=PIPE, preexec_fn=without(0)).returncode == 1
    receiver, sender = start_pipes({"stdout": PIPE, "stderr": PIPE}, {"stderr": PIPE, "preexec_fn": without(0, *also)})
    received, _ = receiver.communicate(timeout=WATCHDOG)
    _, errors = sender.communicate(timeout=WATCHDOG)
    assert (received, receiver.returncode, sender.returncode) == (b"", 1, 1)
    assert b"read standard input: Bad file descriptor" in errors or 2 in also


@pytest.mark.parametrize("also", [[], [0], [0, 2]], ids=str)
def test_a_pipe_whose_output_is_closed_fails_on_both_sides(start_pipes, also):
    receiver, sender = start_pipes({"stderr": PIPE, "preexec_fn": without(1, *also)}, {"stdin": PIPE, "stderr": PIPE})
    sender.communicate(b"some bytes", timeout=WATCHDOG)
    _, errors = receiver.communicate(timeout=WATCHDOG)
    assert (receiver.returncode, sender.returncode) == (1, 1)
    assert b"write standard output: Bad file descriptor" in errors or 2 in also


@pytest.mark.parametrize("number", NUMBERS)
def test_a_pipe_does_its_work_without_what_it_does_not_need(start_pipes, number):
    receiver, sender = start_pipes({"stdout": PIPE, "preexec_fn": without(*{0, 2} & {number})},
                                   {"stdin": PIPE, "preexec_fn": without(*{1, 2} & {number})})
    sender.communicate(b"some bytes", timeout=WATCHDOG)
    assert receiver.communicate(timeout=WATCHDOG)[0] == b"some bytes"
    assert (receiver.returncode, sender.returncode) == (0, 0)


@pytest.mark.parametrize("number", NUMBERS)
def test_run_starts_a_program_with_what_was_closed_closed(number):
    reveal = f"test -e /proc/self/fd/{number} && exit 1 || exit 0"
    plain = subprocess.run(["sh", "-c", reveal], preexec_fn=without(number)).returncode
    assert plain == 0
    assert run(["run", "--no-zmq", "--no-root", "--", "sh", "-c", reveal], preexec_fn=without(number)).returncode == plain
