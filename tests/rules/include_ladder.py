#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads every #include line and checks the ladder of CONTRIBUTING.md: a folder tells what its files may include.

Every folder with sources is on the ladder, and every folder on the ladder has some. Public headers may be included by
anybody and include public headers only. Tests (*_test.cc and everything under tests/) may include anything. Before it
looks at the tree, the check must find violations planted in a scratch tree.
"""

import re
from pathlib import Path

import ladder
import source_tree

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# A file that knows more than its folder, and the folders that it knows. Each with its reason.
EXCEPTIONS = {
    # What SCIF's endpoints have of the fabric that they meet on: its sockets and its handshake.
    "adapters/scif/rendezvous.cc": {"src/fabric/shm"},
}


def folder_of(path):
    """The ladder's name of the folder that a file belongs to, None for a test, "include" for a public header."""
    if source_tree.is_test(path):
        return None
    return "include" if path.parts[0] == "include" else str(path.parent)


def resolve(root, path, bracket, name):
    """The file of ours that an #include line names, relative to the root; None for somebody else's header."""
    beside = [path.parent / name] if bracket == '"' else []
    for candidate in beside + [Path(folder) / name for folder in source_tree.INCLUDE_FOLDERS]:
        if (root / candidate).is_file():
            return candidate
    return None


def judge(usable, path, target):
    """Why `path` must not include `target`, or None."""
    if ".." in target.parts:
        return "write the path from src/, without .."
    source, used = folder_of(path), folder_of(target)
    if source is None or used in (source, "include"):
        return None
    if source == "include":
        return "a public header includes public headers only"
    if used is None:
        return "a test's file is for tests only"
    if used in usable.get(source, ()) or used in EXCEPTIONS.get(str(path), ()):
        return None
    return f"{source} may not know {used}"


def includes(root, path):
    """The #include lines of a file: number, line, the file of ours it names or None, and whether there must be one."""
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, line.strip(), resolve(root, path, *match.groups()), match[1] == '"'


def include_errors(root, usable, path):
    errors = []
    for number, line, target, is_ours in includes(root, path):
        if target:
            reason = judge(usable, path, target)
        else:
            reason = "no such file" if is_ours else None
        if reason:
            errors.append(f"{path}:{number}: {line}: {reason}")
    return errors


def ladder_errors(usable, files):
    """Folders that are on the ladder or have sources, but not both."""
    folders = {folder_of(file): file for file in files if folder_of(file) not in (None, "include")}
    missing = [f"{file}: {name}/ is not on the ladder of {ladder.DOCUMENT}"
               for name, file in folders.items() if name not in usable]
    return missing + [f"{ladder.DOCUMENT}: on the ladder, {name} has no source" for name in usable
                      if name not in folders]


def exception_errors(root):
    """Exceptions that nothing needs any more."""
    errors = []
    for name, folders in EXCEPTIONS.items():
        found = includes(root, Path(name)) if (root / name).is_file() else []
        known = {folder_of(target) for _, _, target, _ in found if target}
        errors += [f"{name} does not include {folder}: take it from EXCEPTIONS" for folder in sorted(folders - known)]
    return errors


def check(root):
    try:
        usable = ladder.usable(ladder.read(root))
    except ValueError as error:
        return [str(error)]
    files = source_tree.sources(root)
    errors = ladder_errors(usable, files) + exception_errors(root)
    for path in files:
        errors += include_errors(root, usable, path)
    return errors


LADDER = """## Where things go

    src/base < src/layout < src/fabric < src/fabric/inproc, src/fabric/shm
    src/layout < src/ring
    src/fabric, src/ring < src/stream < src/mailbox
    adapters/root/sockets < adapters/root/merge
    adapters/scif
    src/stream < bench/harness < bench/systems/limits, bench/systems/root < bench/systems
    bench/systems/root < bench/questions
    adapters/root/sockets, bench/systems/root < bench/systems/root/program
    bench/questions, bench/systems < tools
"""
PLANTED = {
    "CONTRIBUTING.md": LADDER,
    "src/ring/ring.hpp": '#include "fabric/fabric.hpp"',
    "src/fabric/fabric.cc": '#include "ring/ring.hpp"',
    "src/fabric/fabric.hpp": '#include "fabric/shm/shm.hpp"',
    "src/fabric/shm/shm.hpp": '#include "fabric/inproc/inproc.hpp"',
    "src/base/error.cc": "#include <stream/stream.hpp>",
    "src/base/error.c": '#include "ring/ring.hpp"',
    "src/layout/page.hpp": '#include "../base/error.hpp"',
    "src/novel/novel.cc": '#include <vector>',
    "src/stream/stream.cc": '#include "tests/helper.hpp"',
    "include/wherry/wherry.hpp": '#  include "base/error.hpp"',
    "tools/main.cc": '#include "missing.hpp"',
    "bench/systems/root/systems.cc": '#include "adapters/root/sockets/TScif.h"',
    "bench/systems/limits/wake.cc": '#include "bench/systems/root/systems.hpp"',
    "bench/harness/registry.cc": '#include "bench/systems/systems.hpp"',
    "bench/questions/questions.cc": '#include "bench/systems/systems.hpp"',
    "adapters/scif/link.cc": "#include <TScif.h>",
    "adapters/scif/connect.cc": '#include "fabric/shm/shm.hpp"',
    "adapters/root/sockets/TScif.cxx": '#include "adapters/root/merge/merge.hpp"',
}
ALLOWED = {
    "src/stream/stream.hpp": '#include <wherry/wherry.hpp>\n#include "ring/ring.hpp"\n#include <vector>',
    "src/fabric/inproc/inproc.hpp": '#include "fabric/fabric.hpp"\n#include "base/error.hpp"',
    "src/base/error.hpp": '// #include "ring/ring.hpp"',
    "src/ring/ring_test.cc": '#include "fabric/inproc/inproc.hpp"',
    "tests/helper.hpp": '#include "stream/stream.hpp"',
    "tools/commands.hpp": '#include "stream/stream.hpp"',
    "tools/top.cc": '#include "commands.hpp"',
    "adapters/root/sockets/TScif.h": "#include <wherry/wherry.hpp>",
    "adapters/root/merge/merge.hpp": '#include "TScif.h"',
    "adapters/scif/rendezvous.cc": '#include "fabric/shm/connecting.hpp"',
    "src/fabric/shm/connecting.hpp": "",
    "bench/systems/systems.hpp": '#include "bench/harness/registry.hpp"',
    "bench/systems/systems.cc": '#include "bench/systems/root/systems.hpp"',
    "bench/systems/root/systems.hpp": '#include "bench/harness/registry.hpp"',
    "bench/harness/registry.hpp": "",
    "bench/systems/root/program/task.hpp": '#include "TScif.h"\n#include "bench/systems/root/systems.hpp"',
}
# The ladder names a folder that does not exist.
BESIDE = {"CONTRIBUTING.md: on the ladder, src/mailbox has no source"}


def self_test():
    """Every planted violation is found, and nothing else is."""
    with source_tree.planted({**PLANTED, **ALLOWED}) as root:
        errors = check(root)
    found = sorted(error.split(":")[0] for error in errors if error not in BESIDE)
    assert BESIDE < set(errors) and found == sorted(set(PLANTED) - {"CONTRIBUTING.md"}), "\n".join(errors)
    with source_tree.planted({"CONTRIBUTING.md": LADDER, "adapters/scif/rendezvous.cc": ""}) as root:
        assert any("take it from EXCEPTIONS" in error for error in check(root))
    with source_tree.planted({"CONTRIBUTING.md": "## Where things go\n\n    a < b < c\n    c < a\n"}) as root:
        assert "above itself" in check(root)[0]


if __name__ == "__main__":
    source_tree.run(self_test, check, "every #include keeps to the ladder")
