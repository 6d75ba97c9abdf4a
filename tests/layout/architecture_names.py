#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the names which the documents use exist in the code.

ARCHITECTURE.md writes a name as `path:symbol` in backticks, for example `src/ring/ring.hpp:Ring::publish`: the file
must exist, and each part of the symbol must occur in it as a word outside its comments. The section whose heading
holds the word "journey" has numbered steps, and each step names at least one. In every document a backticked path below
one of our folders must exist, unless a word such as NAME or LAYER in capitals makes it a pattern. Before it looks at the tree, the check must find lies planted in a scratch tree.
"""

import re
import sys
import tempfile
from pathlib import Path

FOLDERS = "src|include|tools|bench|demo|tests|scripts|cmake|packages|docs|adapters|bindings|manual"
BACKTICKED = re.compile(rf"`((?:{FOLDERS})/[\w./-]*)(?::((?:\w+::)*~?\w+))?`")
PATTERN = re.compile(r"(?<![A-Za-z])(NAME|LAYER)(?![A-Za-z])")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DOCUMENTS = ("ARCHITECTURE.md", "README.md", "CONTRIBUTING.md", "docs/*.md")


def name_errors(root, document):
    errors = []
    for number, line in enumerate(document.read_text().splitlines(), 1):
        for path, symbol in BACKTICKED.findall(line):
            reason = None if PATTERN.search(path) else missing(root / path, symbol)
            if reason:
                errors.append(f"{document.name}:{number}: `{path}{':' + symbol if symbol else ''}`: {reason}")
    return errors


def missing(file, symbol):
    """What is missing of a named file and its symbol, or None."""
    if not file.exists():
        return "no such file"
    if not symbol:
        return None
    code = COMMENT.sub("", file.read_text())
    for part in symbol.split("::"):
        if not re.search(rf"(?<!\w){re.escape(part)}(?!\w)", code):
            return f"the file has no {part}"
    return None


def journey_errors(document):
    """Every numbered step of the journey names a symbol."""
    steps = journey_steps(document.read_text())
    if not steps:
        return [f"{document.name}: no section with 'journey' in its heading that has numbered steps"]
    return [
        f"{document.name}: this step names no `path:symbol`: {step.splitlines()[0]}"
        for step in steps
        if not any(symbol for _, symbol in BACKTICKED.findall(step))
    ]


def journey_steps(text):
    sections = re.split(r"^(?=#+ )", text, flags=re.MULTILINE)
    steps = []
    for section in sections:
        if "journey" in section.splitlines()[0].lower() if section else False:
            steps += [part for part in re.split(r"^(?=\d+\. )", section, flags=re.MULTILINE) if part[0].isdigit()]
    return steps


def check(root):
    architecture = root / "ARCHITECTURE.md"
    errors = journey_errors(architecture)
    for pattern in DOCUMENTS:
        for document in sorted(root.glob(pattern)):
            errors += name_errors(root, document)
    return errors


PLANTED = """# Architecture
The path `src/ring/gone.hpp` is a lie, `src/LAYER/NAME_test.cc` a pattern.
## The journey of a byte
1. The sender copies: `src/ring/ring.hpp:Ring::copy`.
2. It publishes: `src/ring/ring.hpp:Ring::in_comment`.
3. This step names nothing.
4. `src/ring/ring.hpp:cop` is half a word.
"""


def self_test():
    """Every planted lie is found, and the true name is not."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        (root / "src/ring").mkdir(parents=True)
        (root / "src/ring/ring.hpp").write_text("class Ring { void copy(); };  // in_comment\n")
        (root / "ARCHITECTURE.md").write_text(PLANTED)
        errors = check(root)
    for planted in ("gone.hpp", "in_comment", "3. This step", "no cop"):
        assert sum(planted in error for error in errors) == 1, (planted, errors)
    assert len(errors) == 4, errors


def main():
    self_test()
    root = Path(__file__).resolve().parents[2]
    errors = check(root)
    print("\n".join(errors) if errors else "every name in the documents exists")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
