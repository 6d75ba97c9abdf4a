# SPDX-License-Identifier: Apache-2.0
"""How the tests of the ZeroMQ adapter run programs: libzmq's, our own (traffic), and Python."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("WHERRY_PROGRAM", SOURCE / "build/release/bin/wherry"))
# With a sanitizer it lies where `wherry run` does not find it: programs without that sanitizer cannot load it.
PREFIX = PROGRAM.parents[1] / os.environ.get("WHERRY_ZMQ_FOLDER", "") / "lib/wherry/zmq"
LIBRARY = PREFIX / "lib/libzmq.so.5"
BUILD = SOURCE / "build/zmq" / PROGRAM.parents[1].name
DEBIAN_PYTHON = "/usr/bin/python3"
# For sanitizers, under which everything takes ten times as long.
SHORT = 20 if "WHERRY_ZMQ_SHORT" in os.environ else 1


def environment(tmp_path, **changes):
    """A job of its own for each test, so that ports are no matter of luck."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WHERRY_")}
    # A message whose size is a lie finds no memory, as without a sanitizer.
    for options in {"ASAN_OPTIONS", "TSAN_OPTIONS"} & clean.keys():
        clean[options] += ":allocator_may_return_null=1"
    return {**clean, "WHERRY_JOB": f"t{os.getpid()}-{abs(hash(str(tmp_path))) % 10**9}", **changes}


class Processes:
    """Starts programs, and ends those that a failed test has left behind."""

    def __init__(self, tmp_path):
        self.environment = environment(tmp_path)
        self.started = []

    def start(self, *command, env=None, **options):
        process = subprocess.Popen(
            [str(word) for word in command],
            env={**self.environment, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )
        self.started.append(process)
        return process

    def traffic(self, role, endpoint, **options):
        return self.start(BUILD / "bin/traffic", role, endpoint, *(f"{name}={value}" for name, value in options.items()))

    def python(self, script, *arguments, interpreter=sys.executable, node=0):
        return self.start(PROGRAM, "run", "--node", node, "--", interpreter, script, *arguments)

    def end(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()


def succeed(process, timeout=100):
    """Waits for the end of a program that must not fail; its output."""
    output, _ = process.communicate(timeout=timeout)
    assert process.returncode == 0, output
    return output


def all_succeed(processes, timeout=100):
    outputs = [None] * len(processes)

    def wait(index):
        outputs[index] = processes[index].communicate(timeout=timeout)[0]

    threads = [threading.Thread(target=wait, args=(index,)) for index in range(len(processes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process, output in zip(processes, outputs):
        assert process.returncode == 0, output
    return outputs


def wait_for_line(process, text):
    for line in process.stdout:
        if line.startswith(text):
            return line
    raise AssertionError(f"the program ended without saying {text!r}")


def cpu_seconds(pid):
    """What a running process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settled_cpu_seconds(*processes, timeout=60):
    """What each of them, by its number, has used when they have all stopped using any for half a second."""
    give_up = time.monotonic() + timeout
    before = None
    while (now := {process.pid: cpu_seconds(process.pid) for process in processes}) != before:
        assert time.monotonic() < give_up, "they do not stop"
        before = now
        time.sleep(0.5)
    return now
