#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no source file has more than 400 lines: programs, scripts, CMake; not data, not documents.

Before it looks at the tree, the check must find files that are planted in a scratch tree.
"""

import source_tree

MOST_LINES = 400
SUFFIXES = (*source_tree.C_FAMILY, ".cmake", ".java", ".pml", ".py", ".rs", ".sh")
NAMES = ("CMakeLists.txt", "Makefile")


def is_source(root, path):
    if path.suffix in SUFFIXES or path.name in NAMES:
        return True
    if path.suffix:
        return False
    with (root / path).open("rb") as file:  # a script says so in its first two bytes
        return file.read(2) == b"#!"


def check(root):
    errors = []
    for path in source_tree.ours(root):
        if is_source(root, path):
            lines = len((root / path).read_text().splitlines())
            if lines > MOST_LINES:
                errors.append(f"{path}: {lines} lines; {MOST_LINES} are allowed: split it by idea")
    return errors


LONG = "\n" * MOST_LINES
PLANTED = ("src/a.cc", "src/b.cxx", "src/c.hpp", "include/d.h", "examples/e.c", "tests/f.py", "cmake/g.cmake",
           "src/CMakeLists.txt", "scripts/stages.sh")


def self_test():
    """Every planted file is found, and no other."""
    files = dict.fromkeys(PLANTED, LONG)
    files["scripts/build"] = "#!/bin/sh" + LONG
    files |= {"src/full.cc": LONG[1:], "docs/data.md": LONG, "tests/data.txt": LONG, "tests/data": LONG}
    with source_tree.planted(files) as root:
        errors = check(root)
    assert sorted(error.split(":")[0] for error in errors) == sorted([*PLANTED, "scripts/build"]), "\n".join(errors)


if __name__ == "__main__":
    source_tree.run(self_test, check, f"no source file has more than {MOST_LINES} lines")
