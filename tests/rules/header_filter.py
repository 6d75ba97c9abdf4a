#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that clang-tidy looks at every header of ours, and at no other: the HeaderFilterRegex of .clang-tidy.

What the filter leaves out is not checked, and nothing says so. Before it looks at the tree, the check must find what is
planted in a scratch tree.
"""

import re

import source_tree

CHECKOUT = "/home/user/wherry/"
# Headers of others that our sources include, where a filter that takes too much would find them.
OTHERS = (
    "/usr/include/stdio.h",
    "/usr/include/c++/12/bits/stl_vector.h",
    "/usr/include/fmt/format.h",
    "/usr/include/CLI/App.hpp",
    "/usr/include/nlohmann/json.hpp",
    CHECKOUT + ".venv/lib/python3.11/site-packages/ROOT/include/TFile.h",
    CHECKOUT + "build/lint/root/mock_site_packages/ROOT/include/TServerSocket.h",
)
# Lists for ROOT's dictionary generator, which no compiler sees.
NOT_COMPILED = ("LinkDef.h",)


def header_filter(root):
    found = re.search(r"^HeaderFilterRegex: '(.*)'$", (root / ".clang-tidy").read_text(), re.MULTILINE)
    return re.compile(found[1])


def check(root):
    taken = header_filter(root).search
    headers = [path for path in source_tree.sources(root, (".hpp", ".h")) if path.name not in NOT_COMPILED]
    return [f"{path}: clang-tidy leaves it out" for path in headers if not taken(CHECKOUT + str(path))] + [
        f"{path}: clang-tidy would check it, and it is not ours" for path in OTHERS if taken(path)
    ]


def self_test():
    """The filter of old, which leaves the adapters out, is found, and one that takes too much."""
    names = ("src/a.hpp", "adapters/scif/b.hpp", "adapters/root/sockets/TScif.h", "adapters/root/LinkDef.h")
    headers = dict.fromkeys(names, "")
    narrow = {".clang-tidy": r"HeaderFilterRegex: '/(src|tools)/[^:]*\.hpp$'"}
    wide = {".clang-tidy": r"HeaderFilterRegex: '.*\.(hpp|h)$'"}
    with source_tree.planted(headers | narrow) as root:
        errors = check(root)
    assert [error.split(":")[0] for error in errors] == ["adapters/root/sockets/TScif.h", "adapters/scif/b.hpp"], errors
    with source_tree.planted(headers | wide) as root:
        errors = check(root)
    assert len(errors) == len(OTHERS), errors


if __name__ == "__main__":
    source_tree.run(self_test, check, "clang-tidy looks at every header of ours")
