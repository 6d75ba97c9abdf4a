#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the pages which make install installs name only paths that are installed, too.

The pages, and the examples beside them, are the lines share/doc/wherry/ of tests/outside/manifest. A page may name any
other path of the source tree, in backticks, in a block of code or as the target of a link, only where the sentence, the
first sentence of its section or a heading above it says "in the source tree". The target of a link is relative to its
page. Before it looks at the tree, the check must find paths planted in a scratch tree.
"""

import fnmatch
import os
import re

import source_tree

MANIFEST = "tests/outside/manifest"
INSTALLED = re.compile(r"^(?:\? )?share/doc/wherry/(\S+)$", re.MULTILINE)
SAID = "in the source tree"
HEADING = re.compile(r"(#+) (.*)")
FENCE = re.compile(r" *```")
INDENTED = re.compile(r" {4}(?! *[-*] )")
NEW_UNIT = re.compile(r" *(?:[-*]|\d+\.) |\|")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
BACKTICKED = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
WORD = re.compile(r"[\w.*/-]*\w/?")


class Tree:
    """The paths of the source tree, and which of them are installed as pages or examples."""

    def __init__(self, root):
        files = [str(file) for file in source_tree.ours(root)]
        patterns = INSTALLED.findall((root / MANIFEST).read_text())
        installed = [file for file in files if any(fnmatch.fnmatch(file, pattern) for pattern in patterns)]
        self.pages = [file for file in installed if file.endswith(".md")]
        self.known = with_folders(files)
        self.installed = with_folders(installed)

    def is_missing(self, path):
        return path in self.known and path not in self.installed


def with_folders(files):
    folders = {"/".join(file.split("/")[:depth]) for file in files for depth in range(1, file.count("/") + 1)}
    return folders | set(files)


def paths_of(page, text, is_code):
    """The words of a text that may be paths of the source tree, relative to its root."""
    links = [os.path.join(os.path.dirname(page), target) for target in LINK.findall(text)]
    quoted = [text] if is_code else BACKTICKED.findall(text)
    # One word without a slash is the name of a program or a folder as often as a path: only pages count.
    words = [word for part in quoted for word in WORD.findall(part) if "/" in word or word.endswith(".md")]
    return [os.path.normpath(path) for path in links + words]


def units(text):
    """Yields (number of the first line, text, whether it is code): paragraphs, items, rows of tables, lines of code."""
    fenced = False
    unit = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_fence = bool(FENCE.match(line))
        is_code = not is_fence and (fenced or (not unit and bool(INDENTED.match(line))))
        ends = is_fence or is_code or not line.strip() or NEW_UNIT.match(line) or HEADING.match(line)
        if unit and ends:
            yield unit[0], "\n".join(unit[1:]), False
            unit = []
        fenced ^= is_fence
        if is_code:
            yield number, line, True
        elif HEADING.match(line):
            yield number, line, False
        elif line.strip() and not is_fence:
            unit = [*unit, line] if unit else [number, line]


class Section:
    """What the headings above a line, and the first sentence below the last of them, say."""

    def __init__(self):
        self.headings = []
        self.first_sentence = None

    def enter(self, level, heading):
        self.headings = [(above, text) for above, text in self.headings if above < level] + [(level, heading)]
        self.first_sentence = None

    def says(self, sentence, is_code):
        if self.first_sentence is None and not is_code:
            self.first_sentence = sentence
        said = [sentence, self.first_sentence or "", *(text for _, text in self.headings)]
        return any(SAID in " ".join(text.lower().split()) for text in said)


def page_errors(root, tree, page):
    errors = []
    section = Section()
    for start, text, is_code in units((root / page).read_text()):
        heading = None if is_code else HEADING.match(text)
        if heading:
            section.enter(len(heading[1]), heading[2])
            continue
        for sentence in [text] if is_code else SENTENCE_END.split(text):
            if not section.says(sentence, is_code):
                line = start + text.count("\n", 0, text.index(sentence))
                errors += [f"{page}:{line}: {path} is not installed; write <wherry/X> for a header, or \"{SAID}\""
                           for path in paths_of(page, sentence, is_code) if tree.is_missing(path)]
    return errors


def check(root):
    tree = Tree(root)
    if not tree.pages:
        return [f"{MANIFEST}: no line share/doc/wherry/ matches a page"]
    return [error for page in tree.pages for error in page_errors(root, tree, page)]


PLANTED = """# A page
`src/a.cc:Ring::copy` one, `include/wherry/a.h`
and [two](src/). Three: `examples/`, `docs/using.md`, `CONTRIBUTING.md`, `src`, src/a.cc, `bin/wherry`.
In the source tree
`scripts/go` stands. But `scripts/go --fast` is here.

    scripts/go all    # and src/a.cc

- An item, `src/a.cc`.
- This item stands in the source
  tree: `src/a.cc`.

| `src/a.cc` | in a row |
| `src/a.cc` | in the source tree |

## A section, in the source tree
`src/a.cc`.
### Below it
`src/a.cc`.
## Another one
All of this is in the source tree. It has a drawing:

    src/a.cc

And `src/a.cc`.
## A last one
`src/a.cc`
```sh
cat src/a.cc  # in the source tree
echo no  # src/a.cc
```
"""
FOUND = ["README.md:2: src/a.cc", "README.md:2: include/wherry/a.h", "README.md:2: src", "README.md:3: CONTRIBUTING.md",
         "README.md:5: scripts/go", "README.md:7: scripts/go", "README.md:7: src/a.cc", "README.md:9: src/a.cc",
         "README.md:13: src/a.cc", "README.md:27: src/a.cc", "README.md:30: src/a.cc",
         "docs/using.md:2: docs/words.md", "docs/using.md:2: src/a.cc"]


def self_test():
    """Every planted path that is not installed is found; what is installed, or said to be in the source tree, is not."""
    files = {name: "" for name in ("src/a.cc", "include/wherry/a.h", "scripts/go", "CONTRIBUTING.md", "examples/a.c",
                                   "docs/words.md", "bin/a")}
    links = "# Links\n[a](../examples/a.c) [b](words.md) [c](../src/a.cc#x) [d](using.md)"
    manifest = "share/doc/wherry/README.md\nshare/doc/wherry/docs/using.md\nshare/doc/wherry/examples/*.c"
    with source_tree.planted({**files, "README.md": PLANTED, "docs/using.md": links, MANIFEST: manifest}) as root:
        errors = check(root)
    found = sorted(error.split(" is not installed")[0] for error in errors)
    assert found == sorted(FOUND), "\n".join(sorted(set(found) ^ set(FOUND)) or found)
    with source_tree.planted({MANIFEST: "bin/wherry"}) as root:
        assert len(check(root)) == 1


if __name__ == "__main__":
    source_tree.run(self_test, check, "installed pages name what is installed")
