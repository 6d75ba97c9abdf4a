# SPDX-License-Identifier: Apache-2.0
"""What the rules of this folder share: which files are ours, of which kind, and how a rule tests itself and reports."""

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = (".hpp", ".h", ".inc")
C_FAMILY = (".cc", ".cxx", ".c", *HEADERS)
# Where the compiler looks for the headers of ours that an #include line names.
INCLUDE_FOLDERS = ("src", "include", ".", "tools", "adapters/root/files", "adapters/root/sockets", "adapters/zmq")


def ours(root):
    """All files that git knows or would add, relative to the root; in a tree without git, all files."""
    if not (root / ".git").exists():
        return sorted(file.relative_to(root) for file in root.rglob("*") if file.is_file())
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted({Path(name) for name in names if name and (root / name).is_file()})


def sources(root, suffixes=C_FAMILY):
    return [file for file in ours(root) if file.suffix in suffixes]


def documents(root):
    """ARCHITECTURE.md, README.md, CONTRIBUTING.md and what is in docs/ and below."""
    return [file.relative_to(root) for pattern in ("*.md", "docs/**/*.md") for file in sorted(root.glob(pattern))]


def is_test(path):
    """Whether a file is a test, or a part of one: everything below tests/, and *_test.cc beside its source."""
    return path.parts[0] == "tests" or path.stem.endswith("_test")


@contextlib.contextmanager
def planted(files):
    """A scratch tree of the given files, name to text."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text + "\n")
        yield root


def run(self_test, check, all_well):
    """What every rule does when it is started: finds what is planted, then looks at the tree."""
    self_test()
    errors = check(ROOT)
    print("\n".join(errors) if errors else all_well)
    sys.exit(1 if errors else 0)
