# SPDX-License-Identifier: Apache-2.0
"""Programs start in any order: connecting waits for the listener, and says so on a terminal and in the log."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from program import PROGRAM, environment, wherry

EXAMPLES = Path(PROGRAM).parent
RUNS = 60
WATCHDOG = 600


def run_pair(first, second, job):
    """What a user types: FIRST & SECOND. Returns what both print."""
    result = subprocess.run(
        ["bash", "-c", f"'{EXAMPLES}/{first}' & '{EXAMPLES}/{second}' && wait $!"],
        env=environment(WHERRY_JOB=job), capture_output=True, text=True, timeout=WATCHDOG,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("language", ["cpp", "c"])
def test_a_host_and_a_worker_that_start_at_the_same_time_always_meet(language):
    job = f"order-{os.getpid()}"
    for run in range(RUNS):
        assert run_pair(f"{language}_host", f"{language}_worker", job).startswith("hello from a card"), run


@pytest.mark.parametrize("language", ["cpp", "c"])
def test_a_worker_may_start_before_its_host(language):
    job = f"order-{os.getpid()}"
    for run in range(10):
        assert run_pair(f"{language}_worker", f"{language}_host", job).startswith("hello from a card"), run


@pytest.mark.parametrize("command", [["ship", "--to"], ["pipe"]])
@pytest.mark.parametrize("scheme", ["wherry://0:2000", "tcp://127.0.0.1:9"])
def test_a_terminal_is_told_what_a_program_waits_for(command, scheme, tmp_path):
    terminal, stderr = pty.openpty()
    paths = [str(tmp_path)] if command[0] == "ship" else []
    words = [PROGRAM, command[0], "--wait", str(WATCHDOG), *command[1:], scheme, *paths]
    with subprocess.Popen(words, env=environment(WHERRY_JOB="nobody-here"), stdin=subprocess.PIPE, stderr=stderr) as process:
        os.close(stderr)
        try:
            said = ""
            while "\n" not in said:
                said += os.read(terminal, 4096).decode()
            assert said.strip() == f"wherry {command[0]}: waiting for a listener at {scheme}"
        finally:
            process.kill()
            os.close(terminal)


def test_without_a_terminal_only_the_log_tells_what_a_program_waits_for_and_once(tmp_path):
    nobody = {"WHERRY_JOB": "nobody-here"}
    words = ["ship", "--wait", 3, "--to", "wherry://0:2000", tmp_path]
    result = wherry(*words, env=nobody)
    assert result.returncode == 1
    assert "waiting for" not in result.stderr
    assert re.search(r"; waited \d", result.stderr), result.stderr
    assert wherry(*words, env=nobody | {"WHERRY_LOG": "info"}).stderr.count("waiting for a listener at wherry://0:2000") == 1


def test_a_program_that_opens_a_hosts_file_waits_for_the_server(tmp_path):
    (tmp_path / "file").write_text("content\n")
    address = "wherry://0:2001"
    clean = environment(WHERRY_JOB=f"order-{os.getpid()}", WHERRY_FILE_PATH="kernel")
    words = [EXAMPLES / "cpp_reader", tmp_path / "file", f"{address}/file"]
    with subprocess.Popen(words, env=clean, stdout=subprocess.PIPE, text=True) as reader:
        with subprocess.Popen([PROGRAM, "serve", "--root", tmp_path, "--listen", address], env=clean) as server:
            try:
                assert reader.communicate(timeout=WATCHDOG)[0] == 2 * "content\n"
            finally:
                server.terminate()
    assert reader.returncode == 0
