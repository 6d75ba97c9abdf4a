#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the version in include/wherry/wherry.h is that of CHANGELOG.md's first section and of the symbol maps.

The newest node of each map, which is its last, is of this version or of an earlier one; docs/versions.md says when a map
gets a node. Before it looks at the tree, the check must find what is planted in scratch trees.
"""

import re

import source_tree

HEADER = "include/wherry/wherry.h"
VERSION = re.compile(r'^#define WHERRY_VERSION "(\d+)\.(\d+)\.(\d+)"$', re.MULTILINE)
SECTION = re.compile(r"^## (\d+)\.(\d+)\.(\d+), (not released yet|\d{4}-\d\d-\d\d)$", re.MULTILINE)
NODE = re.compile(r"^WHERRY_(\d+)\.(\d+) \{$", re.MULTILINE)
# A library whose loader's name has the minor version begins its map anew with each.
MAPS = {"src/wherry.map": "anew", "src/capi/wherry_c.map": "grows"}


def map_errors(root, name, version):
    nodes = [tuple(map(int, node)) for node in NODE.findall((root / name).read_text())]
    if not nodes or nodes != sorted(nodes) or nodes[-1] > version[:2]:
        return [f"{name}: nodes WHERRY_MAJOR.MINOR, the newest last, none newer than the version; it has {nodes}"]
    if MAPS[name] == "anew" and version[0] == 0 and nodes != [version[:2]]:
        return [f"{name}: before 1.0 its one node is WHERRY_{version[0]}.{version[1]}"]
    return []


def check(root):
    found = VERSION.search((root / HEADER).read_text())
    if not found:
        return [f"{HEADER}: no WHERRY_VERSION of three numbers"]
    version = tuple(map(int, found.groups()))
    section = SECTION.search((root / "CHANGELOG.md").read_text())
    errors = []
    if not section or tuple(map(int, section.groups()[:3])) != version:
        errors.append(f"CHANGELOG.md: its first section is not that of {HEADER}'s version")
    return errors + [error for name in MAPS for error in map_errors(root, name, version)]


def tree(version, section, shared, c):
    return {HEADER: f'#define WHERRY_VERSION "{version}"', "CHANGELOG.md": f"# Changes\n\n## {section}\n\n## 0.0.1, 2026-01-01",
            "src/wherry.map": shared, "src/capi/wherry_c.map": c}


def self_test():
    """A version that differs somewhere is found, and one that agrees is not."""
    one, two = "WHERRY_0.1 {\n};", "WHERRY_0.1 {\n};\nWHERRY_0.2 {\n} WHERRY_0.1;"
    for version, section, shared, c, wrong in (
            ("0.1.0", "0.1.0, not released yet", one, one, []),
            ("0.2.1", "0.2.1, 2026-12-01", "WHERRY_0.2 {\n};", two, []),
            ("0.2.0", "0.1.0, not released yet", "WHERRY_0.2 {\n};", two, ["CHANGELOG.md"]),
            ("0.2.0", "0.2.0, not released yet", two, one, ["src/wherry.map"]),
            ("0.1.0", "0.1.0, soon", one, two, ["CHANGELOG.md", "src/capi/wherry_c.map"]),
            ("0.1", "0.1.0, not released yet", one, one, [HEADER])):
        with source_tree.planted(tree(version, section, shared, c)) as root:
            errors = check(root)
        assert [error.split(":")[0] for error in errors] == wrong, errors


if __name__ == "__main__":
    source_tree.run(self_test, check, "one version everywhere")
