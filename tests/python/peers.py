# SPDX-License-Identifier: Apache-2.0
"""Programs at the other end: the examples in C++ and C, the program wherry, and Python."""

import os
import subprocess
import sys
from pathlib import Path

import wherry

SOURCE = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("WHERRY_PROGRAM", SOURCE / "build/release/bin/wherry"))
PACKAGE = Path(wherry.__file__).parents[1]
EXAMPLES = SOURCE / "examples/python"


class Peers:
    def __init__(self):
        self.started = []

    def start(self, *command, node=1, **options):
        process = subprocess.Popen(
            [str(word) for word in command],
            env={**os.environ, "WHERRY_NODE": str(node), "PYTHONPATH": str(PACKAGE)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        self.started.append(process)
        return process

    def example(self, name, *arguments, **options):
        """An example in C++ or C: cpp_worker, c_worker."""
        return self.start(PROGRAM.parent / name, *arguments, **options)

    def python(self, script, *arguments, **options):
        return self.start(sys.executable, script, *arguments, **options)

    def code(self, code, *arguments, **options):
        return self.start(sys.executable, "-c", code, *arguments, **options)

    def end(self):
        for process in self.started:
            process.kill()
            process.communicate()


def output_of(process):
    """What a peer printed, once it has ended well."""
    output, errors = process.communicate(timeout=250)
    assert process.returncode == 0, errors
    return output
