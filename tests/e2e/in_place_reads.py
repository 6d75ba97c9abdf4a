# SPDX-License-Identifier: Apache-2.0
"""Programs by `wherry run --files` that tell how many of their reads the kernel has not seen."""

import subprocess
import sys

from program import PROGRAM, environment

READING = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
def seen():
    with open("/proc/self/io") as io:
        return int(io.read().split("syscr: ")[1].split()[0])
before, calls = seen(), int(sys.argv[2])
for i in range(calls):
    os.pread(file, 512, i * 512 % 500_000)
print(calls - (seen() - before))
"""
CALLS = 30_000


def in_place(folder, options, *words):
    """How many reads of a program were made in place."""
    command = [PROGRAM, "run", "--files", folder, *options, "--", sys.executable, "-c", *words]
    result = subprocess.run(list(map(str, command)), env=environment(), cwd=folder, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return int(result.stdout)
