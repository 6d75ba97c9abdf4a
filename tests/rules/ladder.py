# SPDX-License-Identifier: Apache-2.0
"""Reads the ladder where it is written: in CONTRIBUTING.md, the indented block of the section "Where things go".

Each line is a chain, `A < B, C < D`: B and C may include A, D may include A, B and C, but B and C not each other. What
a folder may include, those that may include it may include as well. A folder that stands in no chain after a `<`
includes public headers only.
"""

import re

DOCUMENT = "CONTRIBUTING.md"
SECTION = re.compile(r"^## Where things go\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def read(root):
    """The chains: of each, the rungs from the lowest to the highest, each a list of folders."""
    section = SECTION.search((root / DOCUMENT).read_text())
    lines = re.findall(r"^    (\S.*)$", section[1], re.MULTILINE) if section else []
    return [[[name.strip() for name in rung.split(",")] for rung in line.split("<")] for line in lines]


def usable(chains):
    """Of each folder on the ladder, all folders that it may include. Throws ValueError if one stands above itself."""
    below = {name: set() for chain in chains for rung in chain for name in rung}
    for chain in chains:
        for lower, upper in zip(chain, chain[1:]):
            for name in upper:
                below[name].update(lower)
    for middle in below:
        for names in below.values():
            if middle in names:
                names |= below[middle]
    for name, names in below.items():
        if name in names:
            raise ValueError(f"{DOCUMENT}: on the ladder, {name} stands above itself")
    return below
