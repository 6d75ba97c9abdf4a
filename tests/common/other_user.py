# SPDX-License-Identifier: Apache-2.0
"""For tests: programs that another user runs."""

import os
import subprocess

import pytest

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]


def need_other_user(program):
    """Only root can become one, who may not reach what a sandbox or a home keeps to itself: skips the test then."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    if subprocess.run([*NOBODY, program, "--version"], capture_output=True).returncode != 0:
        pytest.skip("another user cannot run the program")
