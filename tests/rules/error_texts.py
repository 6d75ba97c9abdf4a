#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that what errors of setting up advise is quoted in a test, which forces its cause.

A text that names the wrong cause sends its reader the wrong way, and nothing else notices. Of each piece of advice, the
longest literal of its statement, a test of this tree must have the words. Before it looks at the tree, the check must
find a text planted in a scratch tree, and miss none that is quoted there.
"""

import re

import source_tree

FOLDERS = ["src/base", "src/memory", "src/fabric", "src/fabric/shm", "src/stream", "src/message", "src/file"]
# What ends a call with an Error, or makes the advice of one.
STATEMENT = re.compile(r"(?:\bthrow (?:Error|QueueFull)|\bfail|\breturn|advice =)\b((?:[^;\"]|\"(?:\\.|[^\"\\])*\")*);")
LITERALS = re.compile(r"\"((?:\\.|[^\"\\])*)\"(?:\s*\"((?:\\.|[^\"\\])*)\")?")
SHORTEST = 24
# Causes that no test can force, and why.
UNFORCED = {
    "every port from 1089 up is taken; stop a listener": "64447 listeners",
    "the listener has just closed": "a moment between two system calls",
    "the listener has just closed, and another taken its place": "a moment between two system calls",
    "the kernel must support memfd seals": "all that are supported do",
    "memfds must be on tmpfs": "they are",
    "it must be page-aligned, private and writable": "a caller of the fabric breaks its contract",
    "this process has used all places of its arena; raise the limit of file sizes (ulimit -f) and restart it":
        "2^47 bytes",
    "the fabric cannot map a peer's memory; use one that can, such as shm, or a stream": "refused before, by share()",
    "too many mappings (vm.max_map_count) or too much locked memory (ulimit -l); expose larger ranges, or less":
        "65530 mappings",
    "expose less, or raise vm.max_map_count": "65530 mappings",
}


def joined(text):
    """The text with neighbouring literals joined, as the compiler does."""
    return re.sub(r"\"\s*\n\s*\"", "", text)


def advice(text):
    for statement in STATEMENT.finditer(joined(text)):
        literals = ["".join(found) for found in LITERALS.findall(statement.group(1))]
        longest = max(literals, key=len, default="")
        if len(longest) >= SHORTEST and " " in longest.strip():
            yield longest


def check(root):
    sources = [path for path in source_tree.sources(root) if path.parts[0] in ("src", "tests")]
    quoted = "".join(joined((root / path).read_text()) for path in sources if path.stem.endswith("_test"))
    errors = []
    for path in sources:
        if str(path.parent) not in FOLDERS or source_tree.is_test(path):
            continue
        for words in advice((root / path).read_text()):
            if words not in quoted and words not in UNFORCED:
                errors.append(f"{path}: no test quotes {words!r}; tests/fault/error_text_test.cc forces causes")
    return errors


PLANTED = {
    "src/fabric/a.cc": 'throw Error(errno, "listen", "", "advice that no test quotes " + name);',
    "src/stream/b.cc": 'fail(1, "connect", "advice that is in two parts, "\n    "and quoted nowhere");',
    "src/message/c.hpp": 'return "advice of a function, quoted nowhere";',
    "src/base/d.cc": 'throw Error(EINVAL, "read", "", "advice that is quoted in a test");',
    "src/base/e.cc": 'throw Error(EINVAL, "read", "", "a short one");',
    "src/base/d_test.cc": 'EXPECT_THAT(text, HasSubstr("advice that is "\n "quoted in a test"));',
}


def self_test():
    """Every planted text that no test quotes is found, and no other."""
    with source_tree.planted(PLANTED) as root:
        found = [error.split(":")[0] for error in check(root)]
    assert found == ["src/fabric/a.cc", "src/message/c.hpp", "src/stream/b.cc"], found


if __name__ == "__main__":
    source_tree.run(self_test, check, "every advice of an error is quoted in a test")
