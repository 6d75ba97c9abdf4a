#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a release and the acquire that pairs with it carry the same label in their comments.

A comment on the statement, or right above it, begins with the label, or with several where one function serves several
words: `// RING-TAIL release: the bytes; pairs with Consumer::refresh`. Every operation that names release, acquire,
acq_rel or seq_cst has one, and so has every call of a named barrier (src/arch/barrier.hpp). Each label has a release
and an acquire, which are two places; full barriers are both. `LABEL release` or `LABEL acquire` also counts on a
statement that names no order, as `state_ = x;`. What pairs with something that is not ours says so, and with what:
`outside:` follows the label, or stands in its place. A label that a document names, as in "(label RING-TAIL)", is one
of these.

Before it looks at the tree, the check must find what is planted in a scratch tree.
"""

import collections
import re

import source_tree

FOLDERS = ("src", "adapters", "tools")
BARRIERS = "src/arch"  # defines the named ones
OPERATION = re.compile(r"memory_order_(release|acquire|acq_rel|seq_cst)\b|__ATOMIC_(RELEASE|ACQUIRE|ACQ_REL|SEQ_CST)\b"
                       r"|\barch::(publish_then_look\w*|interrupt_publishers)\(\)")
COMMENT = re.compile(r"(//.*)$")
LABEL = r"[A-Z][A-Z0-9]{2,}(?:-[A-Z0-9]+)*"
LABELLED = re.compile(rf"^//[/!]?<?\s*({LABEL}(?:, {LABEL})*)(?![\w-])(?:\s(release|acquire))?")
OUTSIDE = re.compile(rf"^//[/!]?<?\s*(?:{LABEL}(?:, {LABEL})*,\s)?outside: \S")
NAMED = re.compile(rf"\blabel ({LABEL})(?![\w-])")
ENDS = (";", "{", "}", ":")

Place = collections.namedtuple("Place", "where kinds outside")


def kinds_of(code):
    """Of the operations on a line: "release", "acquire", or both."""
    kinds = set()
    for order, builtin, barrier in OPERATION.findall(code):
        order = (order or builtin).lower()
        kinds |= {order} if order in ("release", "acquire") else {"release", "acquire"}
    return kinds


def split(line):
    """The code and the comment of a line."""
    comment = COMMENT.search(line)
    return (line[: comment.start()].rstrip(), comment[1]) if comment else (line.rstrip(), "")


def comments_of(lines, number):
    """All comments of the statement that a line belongs to, and those right above it."""
    first = last = number
    while first > 0 and lines[first - 1][0] and not lines[first - 1][0].endswith(ENDS):
        first -= 1
    while last + 1 < len(lines) and not lines[last][0].endswith(ENDS):
        last += 1
    comments = [comment for _, comment in lines[first : last + 1]]
    while first > 0 and not lines[first - 1][0] and lines[first - 1][1]:
        first -= 1
        comments.append(lines[first][1])
    return comments


def read(root, path, places):
    """Adds the operations of a file to `places`, a list for each label. Returns what has no label."""
    errors = []
    lines = [split(line) for line in (root / path).read_text().splitlines()]
    for number, (code, comment) in enumerate(lines):
        kinds = kinds_of(code)
        comments = comments_of(lines, number) if kinds else [comment]
        labelled = [match for match in map(LABELLED.match, comments) if match]
        outside = any(map(OUTSIDE.match, comments))
        if not kinds:
            labelled = [match for match in labelled if match[2] and not is_operations(lines, number)]
            kinds = {match[2] for match in labelled}
        elif not labelled and not outside:
            what = " and ".join(sorted(kinds))
            errors.append(f"{path}:{number + 1}: {what} without a label: with what does it pair?")
        for name in {name for match in labelled for name in match[1].split(", ")}:
            places[name].append(Place(f"{path}:{number + 1}", kinds, outside))
    return errors


def is_operations(lines, number):
    """Whether the comment of a line is counted already, with an operation of the same statement or right below."""
    if lines[number][0]:
        return False
    below = next((i for i in range(number, len(lines)) if lines[i][0]), number)
    last = next((i for i in range(below, len(lines)) if lines[i][0].endswith(ENDS)), below)
    return any(kinds_of(code) for code, _ in lines[below : last + 1])


def label_errors(label, places):
    if any(place.outside for place in places):
        return []
    wanted = [kind for kind in ("release", "acquire") if not any(kind in place.kinds for place in places)]
    if not wanted and len({place.where for place in places}) < 2:
        wanted = ["other side"]
    return [f"{places[0].where}: label {label} has no {kind}" for kind in wanted]


def check(root):
    errors = []
    places = collections.defaultdict(list)
    for path in source_tree.sources(root):
        if path.parts[0] in FOLDERS and not source_tree.is_test(path) and not str(path).startswith(BARRIERS + "/"):
            errors += read(root, path, places)
    for label in sorted(places):
        errors += label_errors(label, places[label])
    return errors + [error for path in source_tree.documents(root) for error in document_errors(root, path, places)]


def document_errors(root, path, places):
    lines = enumerate((root / path).read_text().splitlines(), 1)
    named = [(number, label) for number, line in lines for label in NAMED.findall(line)]
    return [f"{path}:{number}: no code has the label {label}" for number, label in named if label not in places]


PLANTED = """
tail.store(1, std::memory_order_release);  // PAIRED release: the bytes
// a.cc:3: without a label
tail.store(1, std::memory_order_release);
// ALONE release: nothing acquires it.
tail.store(1, std::memory_order_release);
if (head.load(std::memory_order_acquire) != 0) return;  // ABANDONED
arch::publish_then_look();  // ONE-SIDED: the other side does not
// PAIRED: hides nothing of the next statement.
first = 1;
tail.store(2, std::memory_order_release);
std::atomic_thread_fence(std::memory_order_seq_cst);
"""
ALLOWED = """
// PAIRED acquire: on the last
// line of a statement.
const auto now =
    tail.load(std::memory_order_acquire);
arch::publish_then_look();  // FENCE: pairs with the next
arch::publish_then_look_unfenced();  // FENCE
// outside: the peer's program reads it.
tail.store(1, std::memory_order_release);
// SIGNAL, outside: whatever acquire reads the word.
tail.store(1, std::memory_order_release);
state = 2;  // STATE release: what it guards
if (state.load(std::memory_order_acquire) == 2) return;  // STATE
store(1, std::memory_order_release);  // PAIRED, STATE
count.fetch_add(1, std::memory_order_relaxed);
"""


def self_test():
    """Every planted fault is found, and nothing else is."""
    files = {"src/a.cc": PLANTED.strip(), "adapters/b.hpp": ALLOWED, "src/a_test.cc": PLANTED,
             "src/arch/c.hpp": PLANTED, "README.md": "With the label PAIRED, and\nthe label GONE."}
    with source_tree.planted(files) as root:
        errors = check(root)
    wanted = {"src/a.cc:3: release without", "src/a.cc:5: label ALONE has no acquire",
              "src/a.cc:6: label ABANDONED has no release", "src/a.cc:7: label ONE-SIDED has no other side",
              "src/a.cc:10: release without", "src/a.cc:11: acquire and release without",
              "README.md:2: no code has the label GONE"}
    assert len(errors) == len(wanted) and all(any(e.startswith(w) for e in errors) for w in wanted), "\n".join(errors)


if __name__ == "__main__":
    source_tree.run(self_test, check, "every release has its labelled acquire")
