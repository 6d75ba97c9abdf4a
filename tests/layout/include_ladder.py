#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads every #include line and checks the ladder: a folder tells what its files may include.

    base < arch < layout < fabric, ring < window < stream < message < mailbox < file < capi < bench < adapters, bindings, tools
    < bench/root/program

Folders on one rung (between two `<`) do not know each other: a ring knows no fabric, a fabric knows no ring. Public
headers may be included by anybody and include public headers only. Tests (*_test.cc and everything under tests/) may
include anything. Before it looks at the tree, the check must find violations planted in a scratch tree.
"""

import re
import sys
import tempfile
from pathlib import Path

LADDER = [
    ["src/base"],
    ["src/arch"],
    ["src/layout"],
    ["src/fabric", "src/ring"],
    ["src/window"],
    ["src/stream"],
    ["src/message"],
    ["src/mailbox"],
    ["src/file"],
    ["src/capi"],
    ["bench"],
    ["adapters", "bindings", "tools"],
    ["bench/root/program"],  # Measures an adapter; `wherry bench` only starts it.
]
RUNG = {folder: rung for rung, folders in enumerate(LADDER) for folder in folders}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path):
    """The ladder's name of the folder that a file belongs to, None for a test, "include" for a public header."""
    parts = path.parts
    if parts[0] == "tests" or re.search(r"_test\.(cc|hpp)$", path.name):
        return None
    if parts[0] == "src" and len(parts) > 2:
        return "/".join(parts[:2])
    if parts[:3] == ("bench", "root", "program"):
        return "/".join(parts[:3])
    return parts[0]


def resolve(root, path, bracket, name):
    """The file of ours that an #include line names, relative to the root; None for somebody else's header."""
    candidates = [Path("src") / name, Path("include") / name]
    if bracket == '"':
        candidates = [path.parent / name, Path("tools") / name, Path(name)] + candidates
    for candidate in candidates:
        if (root / candidate).is_file():
            return candidate
    return None


def judge(path, target):
    """Why `path` must not include `target`, or None."""
    if ".." in target.parts:
        return "write the path from src/, without .."
    source, used = folder_of(path), folder_of(target)
    if source is None or used == "include":
        return None
    if source == "include":
        return "a public header includes public headers only"
    if used is None:
        return "a test's file is for tests only"
    for folder in (source, used):
        if folder not in RUNG:
            return f"{folder}/ is not on the ladder of {Path(__file__).name}"
    if source == used:
        return judge_siblings(path, target)
    if RUNG[used] >= RUNG[source]:
        return f"{source} may not know {used}"
    return None


def judge_siblings(path, target):
    """Within src/fabric: the folders of two fabrics do not know each other, the contract knows neither."""
    if path.parts[:2] != ("src", "fabric") or len(target.parts) < 4:
        return None
    if len(path.parts) < 4:
        return None if path.suffix == ".cc" else "the contract knows no fabric"
    return None if path.parts[2] == target.parts[2] else "a fabric knows no other fabric"


def violations(root):
    found = []
    for top in ("include", "src", "adapters", "bindings", "tools", "bench"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix in (".cc", ".hpp", ".h", ".inc"):
                found += file_violations(root, file.relative_to(root))
    return found


def file_violations(root, path):
    found = []
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = resolve(root, path, *match.groups())
        if target:
            reason = judge(path, target)
        else:
            reason = "no such file" if match[1] == '"' else None
        if reason:
            found.append(f"{path}:{number}: {line.strip()}: {reason}")
    return found


PLANTED = {
    "src/ring/ring.hpp": '#include "fabric/fabric.hpp"',
    "src/fabric/fabric.cc": '#include "ring/ring.hpp"',
    "src/fabric/fabric.hpp": '#include "fabric/shm/shm.hpp"',
    "src/fabric/shm/shm.hpp": '#include "fabric/inproc/inproc.hpp"',
    "src/base/error.cc": "#include <stream/stream.hpp>",
    "src/layout/page.hpp": '#include "../base/error.hpp"',
    "src/novel/novel.cc": '#include "base/error.hpp"',
    "src/stream/stream.cc": '#include "tests/helper.hpp"',
    "include/wherry/wherry.hpp": '#  include "base/error.hpp"',
    "tools/main.cc": '#include "missing.hpp"',
    "bench/root/question.cc": '#include "adapters/root/merge.hpp"',
    "adapters/root/server.cc": '#include "bench/root/program/task.hpp"',
}
ALLOWED = {
    "src/stream/stream.hpp": '#include <wherry/wherry.hpp>\n#include "ring/ring.hpp"\n#include <vector>',
    "src/fabric/inproc/inproc.hpp": '#include "fabric/fabric.hpp"',
    "src/base/error.hpp": "// #include \"ring/ring.hpp\"",
    "src/ring/ring_test.cc": '#include "fabric/inproc/inproc.hpp"',
    "tests/helper.hpp": '#include "stream/stream.hpp"',
    "tools/commands.hpp": '#include "stream/stream.hpp"',
    "tools/top.cc": '#include "commands.hpp"',
    "adapters/root/merge.hpp": "#include <wherry/wherry.hpp>",
    "bench/root/program/task.hpp": '#include "adapters/root/merge.hpp"',
}


def self_test():
    """Every planted violation is found, and nothing else is."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        for name, text in {**PLANTED, **ALLOWED}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text + "\n")
        found = violations(root)
    assert {line.split(":")[0] for line in found} == set(PLANTED) and len(found) == len(PLANTED), "\n".join(found)


def main():
    self_test()
    root = Path(__file__).resolve().parents[2]
    found = violations(root)
    print("\n".join(found) if found else "every #include keeps to the ladder")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
