#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the names which the documents use exist in the code.

The documents write a name as `path:symbol` in backticks, for example `src/ring/ring.hpp:Ring::publish`: the file
must exist, and each part of the symbol must occur in it as a word outside its comments. Each page of docs/design names
at least one, and so does each numbered step of a section whose heading holds the word "journey", of which there must be
one. In every document a backticked path must
exist, unless set-up or a build makes it (MADE), or a word such as NAME or LAYER in capitals makes it a pattern. So must, without
backticks, the folders of an order, `base < ring, fabric < stream`, and those that a table's row of a folder lists
behind a colon. Before it looks at the tree, the check must find lies planted in a scratch tree.
"""

import re

import source_tree

BACKTICKED = re.compile(r"`([\w.-]+/[\w./-]*)(?::((?:\w+::)*~?\w+))?`")
# Not of this tree: what stands for any word, and a unit per second.
ELSEWHERE = re.compile(r"(?<![A-Za-z])(NAME|LAYER|PREFIX|DIR|BASE)(?![A-Za-z])|/s$")
# Folders of set-up and of builds: absent from a fresh clone, so the answer may not depend on them.
MADE = re.compile(r"^(build|\.venv)/")
DESIGN = "docs/design"
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
FOLDER = r"[a-z][\w/]*[\w]"
ORDER = re.compile(rf"{FOLDER}(?:,\s{FOLDER})*(?:\s<\s{FOLDER}(?:,\s{FOLDER})*){{2,}}")
ROW = re.compile(rf"^\| `([\w/]+)/` \|[^|]*: ({FOLDER}(?:, {FOLDER}){{2,}}) \|", re.MULTILINE)


def folder_errors(root, document):
    """Folders without backticks: of an order, and of a row that lists what is in a folder."""
    text = document.read_text()
    listed = [(match, "", re.split(r"[<,\s]+", match[0])) for match in ORDER.finditer(text)]
    listed += [(match, match[1], match[2].split(", ")) for match in ROW.finditer(text)]
    return [
        f"{document.name}:{text.count(chr(10), 0, match.start()) + 1}: no such folder: {name}"
        for match, below, names in listed
        for name in names
        if not any((root / top / name).is_dir() for top in ([below] if below else ["", "src"]))
    ]


def name_errors(root, document):
    errors = []
    for number, line in enumerate(document.read_text().splitlines(), 1):
        for path, symbol in BACKTICKED.findall(line):
            reason = None if ELSEWHERE.search(path) or MADE.search(path) else missing(root / path, symbol)
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


def names_code(text):
    return any(symbol for _, symbol in BACKTICKED.findall(text))


def journey_errors(root):
    """Every page of the design names a symbol, and every numbered step of a journey; and there is a journey."""
    pages = [path for path in source_tree.documents(root) if str(path.parent) == DESIGN]
    steps = [(page, step) for page in pages for step in journey_steps((root / page).read_text())]
    errors = [f"{page}: names no `path:symbol`" for page in pages if not names_code((root / page).read_text())]
    errors += [f"{page}: this step names no `path:symbol`: {step.splitlines()[0]}"
               for page, step in steps if not names_code(step)]
    return errors if steps else [*errors, f"{DESIGN}: no section with 'journey' in its heading has numbered steps"]


def journey_steps(text):
    sections = re.split(r"^(?=#+ )", text, flags=re.MULTILINE)
    steps = []
    for section in sections:
        if "journey" in section.splitlines()[0].lower() if section else False:
            steps += [part for part in re.split(r"^(?=\d+\. )", section, flags=re.MULTILINE) if part[0].isdigit()]
    return steps


def check(root):
    errors = journey_errors(root)
    for document in source_tree.documents(root):
        errors += name_errors(root, root / document) + folder_errors(root, root / document)
    return errors


PLANTED = """# A stream
The path `src/ring/gone.hpp` is a lie, `bindings/` and `tools/NAMES.cc` too, `src/LAYER/NAME_test.cc` a pattern.
| `src/` | what there is: fabric, ring, file |
| `src/ring/` | the queue, fast: includes no fabric |
A layer knows what stands before it: ring < fabric,
src/ring < mailbox. At 2 GB/s, `GB/s`, `build/release/wherry`, `.venv/bin` is 1 < 2 < 3.
## The journey of a byte
1. The sender copies: `src/ring/ring.hpp:Ring::copy`.
2. It publishes: `src/ring/ring.hpp:Ring::in_comment`.
3. This step names nothing.
4. `src/ring/ring.hpp:cop` is half a word.
"""
LIES = ("gone.hpp", "`bindings/`", "NAMES.cc", ":3: no such folder: file", ":5: no such folder: mailbox", "in_comment",
        "3. This step", "no cop", "empty.md: names no")


def self_test():
    """Every planted lie is found, and the true name is not."""
    code = "class Ring { void copy(); };  // in_comment"
    files = {"src/ring/ring.hpp": code, "src/fabric/shm.hpp": "", "docs/design/stream.md": PLANTED}
    with source_tree.planted({**files, "docs/design/empty.md": "Words, and `src/ring/ring.hpp`."}) as root:
        errors = check(root)
    for planted in LIES:
        assert sum(planted in error for error in errors) == 1, (planted, errors)
    assert len(errors) == len(LIES), errors
    with source_tree.planted({"ARCHITECTURE.md": "# No journey"}) as root:
        assert "no section" in check(root)[0]


if __name__ == "__main__":
    source_tree.run(self_test, check, "every name in the documents exists")
