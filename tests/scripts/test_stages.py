# SPDX-License-Identifier: Apache-2.0
"""scripts/stages.sh shows a long build as one line of progress, and the log only of what fails."""

import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from waiting import WATCHDOG, is_running, wait_until

STAGES = Path(__file__).resolve().parents[2] / "scripts/stages.sh"
STAGE = f'set -euo pipefail; source "{STAGES}"; stages_planned=1; stage "the work" bash -c "$1" && report_stages'
# As a user's shell does, this one outlives what it starts: the end of a terminal's first process would end all others.
SHELL = 'trap : INT; bash -c "$0" bash "$1"; echo "status $?"; cat hold'


class Terminal:
    """A stage on a terminal of its own."""

    def __init__(self, folder, command):
        os.mkfifo(folder / "hold")
        self.seen = ""
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored, if the tests were started in the background
            os.environ["TERM"] = "xterm"
            os.execvp("bash", ["bash", "-c", SHELL, STAGE, command])

    def wait_for(self, pattern):
        while not (found := re.search(pattern, self.seen)):
            self.seen += os.read(self._fd, 65536).decode(errors="replace")
        return found

    def status(self):
        return int(self.wait_for(r"status (\d+)\r\n")[1])

    def interrupt(self):
        os.write(self._fd, b"\x03")

    def close(self):
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._fd)


@pytest.fixture
def stage(tmp_path):
    """Starts a stage with a shell's command, in which `cat go` waits until the test says so by writing to tmp_path/go."""
    os.mkfifo(tmp_path / "go")
    terminals = []
    yield lambda command: terminals.append(Terminal(tmp_path, command)) or terminals[-1]
    for terminal in terminals:
        terminal.close()


def test_a_build_shows_how_far_it_is_and_about_how_long_it_takes(tmp_path, stage):
    log = "'[30/120 10.069s] Building CXX object a.o' 'a.cc:3: warning: odd' '  3 | odd'"
    terminal = stage(f"printf '%s\\n' {log}; cat go; echo '[120/120 40.1s] Linking'")
    terminal.wait_for(r" s  building: 30 of 120, about 30 s left")
    assert "warning" not in terminal.seen
    (tmp_path / "go").write_text("")
    assert terminal.status() == 0
    assert re.search(r"\r\x1b\[K      done in \d+ s\r\ntotal time \d+ s\r\n", terminal.seen)


def test_a_stage_that_builds_nothing_shows_what_it_says_last(tmp_path, stage):
    terminal = stage("echo first; echo second; cat go")
    terminal.wait_for(r" s  second")
    (tmp_path / "go").write_text("")
    assert terminal.status() == 0


def test_a_stage_that_fails_shows_the_end_of_its_log_and_where_that_is(tmp_path):
    command = "echo '[1/2 0.1s] Building CXX object a.o'; echo 'a.cc:3: error: odd'; exit 7"
    script = f'source "{STAGES}"; stage "the work" bash -c "$1" || report_stages'
    done = subprocess.run(["bash", "-c", script, "bash", command], cwd=tmp_path, capture_output=True, text=True, timeout=WATCHDOG)
    assert "FAILED (status 7)" in done.stdout and "the end of build/logs/the-work.log:" in done.stdout
    assert "      | a.cc:3: error: odd" in done.stdout
    assert "[1/2" not in done.stdout
    assert done.stdout.splitlines()[-1] == "failed stage: the work"


def test_an_interrupt_ends_the_command_of_the_stage_too(stage):
    terminal = stage("echo pid $$; cat go")
    pid = terminal.wait_for(r"pid (\d+)")[1]
    terminal.interrupt()
    assert terminal.status() == 128 + signal.SIGINT
    wait_until(lambda: not is_running(pid), "the command to end")


@pytest.mark.parametrize("minutes,said", [(-1, "WARNING: left out, as it is late: the tests\n"), (1, "begun\n"), (None, "begun\n")])
def test_what_would_begin_too_late_is_left_out_and_noted(tmp_path, minutes, said):
    notes = tmp_path / "left-out.txt"
    environment = os.environ | {"WHERRY_LEFT_OUT": str(notes)}
    environment.pop("WHERRY_LAST_BEGIN", None)
    if minutes is not None:
        environment["WHERRY_LAST_BEGIN"] = str(int(time.time()) + 60 * minutes)
    command = f'set -euo pipefail; source "{STAGES}"; left_out "the tests" || echo begun'
    output = subprocess.check_output(["bash", "-c", command], env=environment, text=True)
    assert output.lstrip() == said
    assert notes.exists() == (said != "begun\n") and (not notes.exists() or notes.read_text() == output)
