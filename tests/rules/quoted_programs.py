#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a program which a document prints is the one that is compiled and run.

A block of code whose first line is a comment with a path, as `// examples/cpp/host.cc`, shows that file, whole, without
its line about the licence. Before it looks at the tree, the check must find blocks planted in a scratch tree.
"""

import re

import source_tree

BLOCK = re.compile(r"^```\w+\n(?://|#) ([\w.-]+(?:/[\w.-]+)+)\b[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LICENCE = re.compile(r"^(?://|#) SPDX-License-Identifier: .*\n", re.MULTILINE)


def check(root):
    errors = []
    for document in source_tree.documents(root):
        for name, shown in BLOCK.findall((root / document).read_text()):
            file = root / name
            if not file.is_file():
                errors.append(f"{document}: shows {name}, which does not exist")
            elif LICENCE.sub("", file.read_text(), count=1).strip("\n") != shown.strip("\n"):
                errors.append(f"{document}: what it shows as {name} is not what stands there")
    return errors


def self_test():
    """A block that differs and one of no file are found; a block that agrees and one that names no file are not."""
    source = "// SPDX-License-Identifier: Apache-2.0\n#include <a>\nint main() {}"
    files = {
        "examples/a.cc": source,
        "README.md": "```cpp\n// examples/a.cc: c++ a.cc\n#include <a>\nint main() {}\n```\n\n```c\nint x;\n```",
        "docs/a.md": "```cpp\n// examples/a.cc\nint main() {}\n```",
        "docs/b.md": "```cpp\n// examples/b.cc\nint main() {}\n```",
    }
    with source_tree.planted(files) as root:
        errors = check(root)
    assert [error.split(":")[0] for error in errors] == ["docs/a.md", "docs/b.md"], errors


if __name__ == "__main__":
    source_tree.run(self_test, check, "programs that documents show are those in examples/")
