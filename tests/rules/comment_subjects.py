#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the lines of comment whose subject is a person, in C and C++: who, whoever, whom, somebody, nobody and the like.

The subject of a sentence is a thing in the code: "once the receiver has drained the ring", not "who has read all". The
count is a ratchet: a change that lowers it lowers MOST, too. Before it looks at the tree, the check must find lines planted in a
scratch tree.
"""

import re

import source_tree

MOST = 0
# Not "whose", which things have too.
PERSON = re.compile(r"\b(?:who|whom)(?:ever)?\b|\b(?:some|any|every|no)body\b|\b(?:some|any|every)one\b|\bno one\b", re.IGNORECASE)
# Comments, and what may hold their signs without being one: raw strings, strings, characters.
TOKEN = re.compile(
    r'R"(?P<end>[^\s()\\]{0,16})\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|\'(?:\\[^\'\n]+|[^\'\\\n])\''
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)",
    re.DOTALL,
)


def lines_about_people(text):
    """The numbers of the lines."""
    found = set()
    for token in TOKEN.finditer(text):
        first = text.count("\n", 0, token.start()) + 1
        for number, line in enumerate((token["comment"] or "").split("\n"), first):
            if PERSON.search(line):
                found.add(number)
    return sorted(found)


def all_lines(root):
    return [f"{path}:{number}" for path in source_tree.sources(root)
            for number in lines_about_people((root / path).read_text())]


def check(root, most=MOST):
    found = all_lines(root)
    if len(found) <= most:
        return []
    return [*found, f"{len(found)} lines of comment have a person as their subject, and {most} are allowed: name the thing"]


PLANTED = {
    "src/a.cc": "int x;  // Whoever reads this\n// nobody: two\n/* a block\n * that somebody\n * reads */\n",
    "tools/b.hpp": "// The window whose owner is gone\n// Anyone else's number; whole\n",
    "tests/c.c": 'char a[] = "// who"; char b = \'"\'; // no one\nauto r = R"x(\n// who)x"; int n = 1\'000\'000; // everyone\n',
    "scripts/d.py": "# who\n",
}


def self_test():
    """Every planted line is found, and no other; none is an error before there are too many."""
    with source_tree.planted(PLANTED) as root:
        found = all_lines(root)
        assert found == ["src/a.cc:1", "src/a.cc:2", "src/a.cc:4", "tests/c.c:1", "tests/c.c:3", "tools/b.hpp:2"], found
        assert not check(root, len(found)) and len(check(root, len(found) - 1)) == len(found) + 1


if __name__ == "__main__":
    source_tree.run(self_test, check, f"{len(all_lines(source_tree.ROOT))} lines of comment are about people; {MOST} may be")
