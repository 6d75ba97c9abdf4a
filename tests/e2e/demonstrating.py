# SPDX-License-Identifier: Apache-2.0
"""How the tests run the demo (demo/hand_over.py): one round, few shippers, copies in a folder of the test's own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import program

DEMO = Path(__file__).resolve().parents[2] / "demo"
WATCHDOG = 300  # seconds; the demo waits for the disk, and so for what others have written


def command(tree, work, *options, program=program.PROGRAM):
    return [sys.executable, DEMO / "hand_over.py", "--program", program, "--shippers", "3", "--rounds", "1", "--at-least", "0",
            *(["--work", work] if work else []), *options, "--", tree]


def heed_signals():
    """Signals may come ignored from where the tests are started: by nohup, or in the background."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(tree, work, *options, program=program.PROGRAM, **settings):
    work.mkdir()
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment()} | settings
    return subprocess.Popen(command(tree, work, *options, program=program), preexec_fn=heed_signals, **settings)


def run(tree, work, *options, program=program.PROGRAM, prefix=(), **settings):
    """Runs the demo to its end: whatever happened, it says so in words, and its copies are gone."""
    work.mkdir(exist_ok=True)
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment()} | settings
    done = subprocess.run([*prefix, *command(tree, work, *options, program=program)], timeout=WATCHDOG, **settings)
    assert_cleaned_up(work, done.stderr)
    return done


def assert_cleaned_up(work, errors):
    assert "Traceback" not in errors
    assert os.listdir(work) == []


def environment():
    # Python's own files stay out of the source tree, which may belong to another user.
    return program.environment(PYTHONDONTWRITEBYTECODE="1")


def imitation(folder, script):
    """A program in place of wherry: a shell script, in which $WHERRY is the real one."""
    path = folder / "imitation"
    path.write_text(f"#!/bin/sh\nWHERRY='{Path(program.PROGRAM).resolve()}'\n{script}\n")
    path.chmod(0o755)
    return path
