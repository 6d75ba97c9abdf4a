#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rows of CONTRIBUTING.md's table "to add | write | and change" that say "nothing".

The build finds a new source of such a row by itself, so no CMake file may name one that is there; but a test's may,
which takes of another folder what it tests. The row claims the folders of the paths that it writes in backticks:
`bench/NAME.cc` the folder bench, `src/` all folders below src; NAME and LAYER are any word. Before it looks at the
tree, the check must find rows planted in a scratch tree.
"""

import os
import re
from pathlib import Path

import source_tree

DOCUMENT = "CONTRIBUTING.md"
HEADING = "| to add | write | and change |"
PATH = re.compile(r"`([\w.-]+/[\w./-]*)`")
ANY_WORD = re.compile(r"NAME|LAYER")
NAMED = re.compile(r"(?<![\w./*\\|({}])((?:\$\{\w+\}/|\.\./)?[\w./-]*\w\.(?:cc|cxx|c|py))(?![\w.])")


def rows(root):
    """Of each row that says nothing: what it is about, and the paths that it claims."""
    table = (root / DOCUMENT).read_text().partition(HEADING)[2].partition("\n\n")[0]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[2].startswith("nothing"):
            yield cells[0], PATH.findall(cells[1])


def claimed(root, paths):
    """The folders whose sources the build finds by itself."""
    folders = set()
    for path in paths:
        below = path.endswith("/")
        for folder in root.glob(ANY_WORD.sub("*", path.rstrip("/") if below else str(Path(path).parent))):
            folders.add(folder)
            folders.update(entry for entry in folder.rglob("*") if below and entry.is_dir())
    return {folder.relative_to(root) for folder in folders}


def named_sources(root, path):
    """The sources that a CMake file names one by one, each with the number of its line."""
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        for name in NAMED.findall(line.partition("#")[0]):
            start = "" if name.startswith("${PROJECT_SOURCE_DIR}/") else path.parent
            source = Path(os.path.normpath(Path(start) / re.sub(r"^\$\{\w+\}/", "", name)))
            is_for_a_test = path.parts[0] == "tests" != source.parts[0]
            if (root / source).is_file() and not is_for_a_test:
                yield number, source


def check(root):
    files = [path for path in source_tree.ours(root) if path.name == "CMakeLists.txt" or path.suffix == ".cmake"]
    found = [(path, *named) for path in files for named in named_sources(root, path)]
    errors = []
    for title, paths in rows(root):
        folders = claimed(root, paths)
        if paths and not folders:
            errors.append(f"{DOCUMENT}: '{title}': there is no such folder")
        errors += [f"{path}:{number}: names {source}, and {DOCUMENT} says that nothing is to be changed for '{title}'"
                   for path, number, source in found if source.parent in folders]
    return errors


TABLE = f"""{HEADING}
|---|---|---|
| a source | `src/LAYER/name.cc`, `name_test.cc` beside it | nothing: folders are globbed |
| an adapter's | `name.cc` in a folder of `adapters/root/` | nothing |
| a program | `bench/standalone/NAME.cc` | nothing |
| a mailbox | `mailbox/NAME.cc` | nothing |
| a package | a line in packages.txt | nothing |
| a question | `bench/questions/NAME.cc` | its row |

| not | `tools/NAME.cc` | nothing |
"""
PLANTED = {
    "src/capi/CMakeLists.txt": "add_library(c SHARED\n  window.cc)",
    "adapters/root/merge/CMakeLists.txt": "add_executable(merge program/main.cc)",
    "cmake/Bench.cmake": "add_executable(bench ${PROJECT_SOURCE_DIR}/bench/standalone/death.cc)",
}
ALLOWED = {
    "src/ring/CMakeLists.txt": "wherry_layer(ring)  # as window.cc\nlist(FILTER s EXCLUDE REGEX \"_test\\\\.cc$\")",
    "adapters/scif/CMakeLists.txt": "add_library(scif link.cc)",
    "tests/fuzz/CMakeLists.txt": "add_executable(fuzz ${PROJECT_SOURCE_DIR}/src/ring/window.cc)",
    "bench/questions/CMakeLists.txt": "add_library(q connect.cc ../../tools/main.cc)",
}
SOURCES = ("src/capi/window.cc", "src/ring/window.cc", "adapters/root/merge/program/main.cc",
           "bench/standalone/death.cc", "adapters/scif/link.cc", "bench/questions/connect.cc", "tools/main.cc")


def self_test():
    """Every row that is false is found, and nothing else is."""
    with source_tree.planted({**PLANTED, **ALLOWED, **dict.fromkeys(SOURCES, ""), DOCUMENT: TABLE}) as root:
        errors = check(root)
    assert sorted(error.split(":")[0] for error in errors) == sorted([*PLANTED, DOCUMENT]), "\n".join(errors)


if __name__ == "__main__":
    source_tree.run(self_test, check, "where nothing is to be changed, nothing is")
