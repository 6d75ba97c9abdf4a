#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each struct in a header of a folder named layout has the static_assert of its size, in the same header.

Such a folder has the bytes that a second process can see, src/layout those of the core and others their own. Two builds
must not come to differ there, and nothing else notices if they do. Before it looks at the tree, the check must find what
is planted in a scratch tree.
"""

import re

import source_tree

STRUCT = re.compile(r"^struct (?:alignas\([^)]*\) )?(\w+)[^;{]*\{", re.MULTILINE)


def check(root):
    errors = []
    for path in source_tree.sources(root, (".hpp",)):
        if path.parent.name != "layout" or source_tree.is_test(path):
            continue
        text = (root / path).read_text()
        errors += [f"{path}: no static_assert(sizeof({name}) == ...)" for name in STRUCT.findall(text)
                   if not re.search(rf"static_assert\([^;]*\bsizeof\({name}\) [=<]=", text)]
    return errors


PLANTED = {
    "src/layout/page.hpp": "struct Page {\n};\nstruct alignas(64) Line {\n};\nstatic_assert(sizeof(Page) == 64, \"Line\");",
    "adapters/novel/layout/packet.hpp": "struct Packet {\n};",
    "src/novel/page.hpp": "struct Private {\n};",
    "tests/rules/page.hpp": "struct Planted {\n};",
}


def self_test():
    with source_tree.planted(PLANTED) as root:
        errors = check(root)
    assert [error.split(":")[0] for error in errors] == ["adapters/novel/layout/packet.hpp", "src/layout/page.hpp"], errors
    assert "Line" in errors[1], errors


if __name__ == "__main__":
    source_tree.run(self_test, check, "every struct that a second process sees has the assert of its size")
