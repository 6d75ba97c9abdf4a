#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rows of CONTRIBUTING.md's table "to add | write | and change": what is there obeys them.

Of each path in backticks: one that stands for any (NAME, LAYER) has an instance in the tree, any other is a file or folder. Each
file that the row changes knows the name of an instance of the first such path.
tests/rules/nothing_to_change.py checks the rows that change nothing. Before it looks at the tree, the check must find
rows planted in a scratch tree.
"""

import re

import nothing_to_change
import source_tree

DOCUMENT = nothing_to_change.DOCUMENT
PATH = re.compile(r"`([\w.-]+(?:/[\w.*-]*)+|CMakeLists\.txt|[A-Z]{4,}\.md)`")
ANY = nothing_to_change.ANY_WORD
# What a build makes, and what is told below the folder that stands before it in its row.
ELSEWHERE = re.compile(r"^corpus/")


def rows(root):
    """Of each row: what it is about, the paths to write, and the paths to change."""
    table = (root / DOCUMENT).read_text().partition(nothing_to_change.HEADING)[2].partition("\n\n")[0]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and not cells[0].startswith("---"):
            write, change = ([path for path in PATH.findall(cell) if not ELSEWHERE.search(path)] for cell in cells[1:])
            yield cells[0], write, change


def instances(root, path):
    """The files that a path may stand for, each with the name that it has in the place of NAME."""
    named = re.compile(ANY.sub(r"([\\w-]+)", re.escape(path.rstrip("/"))))
    for file in sorted(root.glob(ANY.sub("*", path.rstrip("/")))):
        match = named.fullmatch(str(file.relative_to(root)))
        yield match[1] if match and match.groups() else ""


def row_errors(root, write, change):
    errors = [f"nothing is there like `{path}`" for path in write + change if not list(instances(root, path))]
    patterns = [path for path in write if ANY.search(path)]
    if errors or not patterns:
        return errors
    names = set(instances(root, patterns[0]))
    for path in change:
        text = (root / path).read_text() if (root / path).is_file() else None
        if text is not None and not any(re.search(rf"(?<![a-z])(?:lib)?{re.escape(name)}(?![a-z])", text) for name in names):
            errors.append(f"`{path}` names nothing that is written as `{patterns[0]}`")
    return errors


def check(root):
    return [f"{DOCUMENT}: '{title}': {error}" for title, write, change in rows(root)
            for error in row_errors(root, write, change)]


TABLE = f"""{nothing_to_change.HEADING}
|---|---|---|
| a fabric | `src/fabric/NAME/CMakeLists.txt` | one line in `src/fabric/CMakeLists.txt` |
| a subcommand | `tools/NAME.cc` | its row in `tools/main.cc`, in `CMakeLists.txt` too |
| a question | `bench/NAME.cc` | its row in `bench/list.cc` |
| an adapter | `adapters/NAME/CMakeLists.txt` | a line in `adapters/gone.txt` |
| a layer | `src/LAYER/layer.cc` | one line in `src/fabric/CMakeLists.txt` |
| a call | a file of `src/capi/` | nothing |
| a fuzz target | `tests/NAME_fuzz.cc`, `corpus/NAME_fuzz/` | nothing |
"""
TREE = {
    DOCUMENT: TABLE,
    "src/fabric/shm/CMakeLists.txt": "",
    "src/fabric/CMakeLists.txt": "wherry_fabric(shm)",
    "tools/top.cc": "",
    "tools/main.cc": "int main() { return stop(); }",
    "bench/list.cc": '{"stream"}, {"idle"}',
    "bench/stream.cc": "",
    "adapters/scif/CMakeLists.txt": "",
    "src/capi/call.cc": "",
    "tests/ring_fuzz.cc": "",
}
WRONG = ("a subcommand", "an adapter", "a layer")


def self_test():
    """A row that the tree does not obey is found, and no other."""
    with source_tree.planted(TREE) as root:
        errors = check(root)
    assert [error.split("'")[1] for error in errors] == list(WRONG), errors


if __name__ == "__main__":
    source_tree.run(self_test, check, "what is there was written and changed as CONTRIBUTING.md says")
