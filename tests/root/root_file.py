# SPDX-License-Identifier: Apache-2.0
"""What the tests of files over Wherry have in common: a receiver that stores every file, and workers."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import uproot

PROGRAM = Path(os.environ["WHERRY_PROGRAM"]).resolve()
BIN = Path(os.environ["WHERRY_ROOT_BIN"]).resolve()
TIMEOUT = 240


class Receiver:
    """root_receiver, whose lines are gathered as they come."""

    def __init__(self, directory, *options):
        self.directory = Path(directory)
        self.directory.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [BIN / "root_receiver", self.directory, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.address = self.process.stdout.readline().strip().replace("wherry+shm:", "wherry:")
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.split(maxsplit=3))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Ends it in order and returns its statistics."""
        self.process.stdin.close()
        assert self.process.wait(TIMEOUT) == 0
        self.reader.join(TIMEOUT)
        last = self.lines.pop()
        assert last[0] == "statistics"
        words = " ".join(last[1:]).split()
        return {key: int(value) for key, value in (word.split("=") for word in words)}

    def files(self):
        """Of each worker, by its number, the files in the order it wrote them; each is a real ROOT file by now."""
        found = {}
        for path in self.directory.glob("*.root"):
            worker, sequence = map(int, path.stem.split("-"))
            found.setdefault(worker, []).append((sequence, path))
        return {worker: [path for _, path in sorted(paths)] for worker, paths in found.items()}

    def all_files(self):
        return [path for paths in self.files().values() for path in paths]


def start(*command, plain=False, cwd=None, keep=()):
    """A program under `wherry run`, or by itself."""
    words = [*command] if plain else [PROGRAM, "run", "--", *command]
    environment = {
        key: value for key, value in os.environ.items() if key in keep or not key.startswith(("ROOTENV", "LD_LIBRARY"))
    }
    return subprocess.Popen(
        list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=cwd
    )


def start_python(directory, script, *arguments, plain=False, keep=()):
    path = Path(directory) / "worker.py"
    path.write_text("import sys, array, ROOT\nROOT.gROOT.SetBatch()\n" + script)
    return start(sys.executable, path, *arguments, plain=plain, cwd=directory, keep=keep)


def succeed(process):
    output, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, output + errors
    return output


def end_in_header(path):
    """Where the file's header says that the file ends."""
    head = path.read_bytes()[:64]
    assert head[:4] == b"root"
    large = int.from_bytes(head[4:8], "big") >= 1000000
    return int.from_bytes(head[12:20] if large else head[12:16], "big")


def check_worker_file(path, number, entries):
    """Every value of a file of root_worker. Returns the thread that wrote it."""
    with uproot.open(path) as file:
        arrays = file["events"].arrays(library="np")
    thread = int(arrays["thread"][0])
    assert (arrays["thread"] == thread).all()
    assert (arrays["file"] == number).all()
    assert (arrays["entry"] == np.arange(entries)).all()
    expected = (thread + 1e3 * number) + 1e-3 * np.arange(entries)[:, None] + np.arange(32)[None, :]
    assert np.allclose(arrays["values"], expected, rtol=1e-15, atol=0)
    assert end_in_header(path) == path.stat().st_size, "the file is not exactly its bytes"
    return thread
