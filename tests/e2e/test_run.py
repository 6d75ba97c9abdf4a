# SPDX-License-Identifier: Apache-2.0
"""wherry run: the environment it gives, the exit status it passes on, and what it says when it cannot."""

import os
import signal
import stat
import subprocess

import pytest
from program import PROGRAM, environment, wherry


def test_the_program_sees_its_node_and_every_other_option_given():
    result = wherry("run", "--node", 3, "--job", "j", "--fabric", "inproc", "--ring", "64K", "--connect-timeout", 5, "--", "env")
    seen = dict(line.split("=", 1) for line in result.stdout.splitlines() if line.startswith("WHERRY_"))
    assert seen == {
        "WHERRY_NODE": "3",
        "WHERRY_JOB": "j",
        "WHERRY_FABRIC": "inproc",
        "WHERRY_RING": "64K",
        "WHERRY_CONNECT_TIMEOUT": "5",
    }


def test_options_not_given_keep_what_the_environment_says():
    result = wherry("run", "--node", 3, "--", "env", env={"WHERRY_RING": "8K", "WHERRY_NODE": "1"})
    assert "WHERRY_RING=8K" in result.stdout and "WHERRY_NODE=3" in result.stdout


def test_the_loader_is_given_no_more_folders_to_look_for_each_library_in():
    assert "LD_LIBRARY_PATH=/own\n" in wherry("run", "--", "env", env={"LD_LIBRARY_PATH": "/own"}).stdout


@pytest.mark.parametrize("status", [0, 1, 2, 42, 125, 255])
def test_the_exit_status_is_the_programs_own(status):
    assert wherry("run", "--node", 1, "--", "sh", "-c", f"exit {status}").returncode == status


def test_a_program_killed_by_a_signal_is_seen_as_that():
    assert wherry("run", "--", "sh", "-c", "kill -KILL $$").returncode == -signal.SIGKILL


def test_the_program_takes_the_place_of_wherry_run():
    with subprocess.Popen(
        [PROGRAM, "run", "--node", "1", "--", "sh", "-c", "echo $$"], env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert int(process.stdout.read()) == process.pid


def test_a_broken_pipe_kills_the_program_as_it_would_without_wherry():
    result = wherry("run", "--", "sh", "-c", "yes | head -n 1; true")
    assert result.stdout.startswith("y\n") and result.stderr == ""


def test_arguments_after_the_program_are_its_own_even_if_wherry_knows_them():
    result = wherry("run", "--node", 1, "--", "echo", "--node", 2, "--", "--help", "ship")
    assert result.stdout == "--node 2 -- --help ship\n"


def test_a_program_that_is_not_found_is_127():
    result = wherry("run", "--node", 1, "--", "no-such-program")
    assert result.returncode == 127
    assert "cannot run no-such-program: No such file or directory" in result.stderr


def test_a_file_that_cannot_be_executed_is_126(tmp_path):
    file = tmp_path / "data"
    file.write_text("no program")
    os.chmod(file, stat.S_IRUSR)
    result = wherry("run", "--", file)
    assert result.returncode == 126
    assert "Permission denied" in result.stderr


@pytest.mark.parametrize("option, value", [("--node", "65536"), ("--job", "a/b"), ("--ring", "1"), ("--fabric", "SHM"), ("--zmq", "udp://x")])
def test_an_option_that_is_not_valid_runs_nothing_and_says_what_is(option, value):
    result = wherry("run", option, value, "--", "echo", "ran")
    assert result.returncode == 125
    assert result.stdout == ""
    assert f"={value}: Invalid argument; use " in result.stderr


def test_without_a_program_it_is_a_usage_error():
    result = wherry("run", "--node", 1)
    assert result.returncode == 2
    assert "PROGRAM is required" in result.stderr
