# SPDX-License-Identifier: Apache-2.0
"""How the end-to-end tests run the program under test (WHERRY_PROGRAM)."""

import os
import subprocess

PROGRAM = os.environ.get("WHERRY_PROGRAM", "wherry")


def environment(**changes):
    """This environment without any WHERRY_* option, and with the changes."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WHERRY_")}
    return {**clean, **changes}


def wherry(*arguments, env=None, timeout=200):
    """Runs to the end; the result has returncode, stdout and stderr (text)."""
    return subprocess.run(
        [PROGRAM, *map(str, arguments)], env=environment(**(env or {})), capture_output=True, text=True, timeout=timeout
    )


def served(path, folder):
    """The begin of a command that runs a program whose files below the folder take that path."""
    return [PROGRAM, "run", "--files", folder, "--file-path", path, "--"]
