#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the pages of the site together: gather.py SOURCE_TREE MANUAL_FOLDER... PAGES

Copies the Markdown pages of the source tree to the folder PAGES, where a page's name in backticks becomes a link to it,
adds a page for each man page below the MANUAL_FOLDERs, the reference of the Python package if it is built, and the report
of `make bench` if there is one.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

NAVIGATION = Path(__file__).with_name("mkdocs.yml")
REPORT = Path("build/bench/report.html")
# What nanobind makes of the Python package while it is built.
STUB = Path("build/release/python/wherry/_native.pyi")
FENCE = re.compile(r" *```")
QUOTED = re.compile(r"(?<!\[)`([^`\s]+\.md)`")
HOME = "README.md"


def main(tree, manuals, pages):
    shutil.rmtree(pages, ignore_errors=True)
    sources = [page.relative_to(tree) for pattern in ("*.md", "docs/**/*.md") for page in sorted(tree.glob(pattern))]
    check_navigation(sources)
    for source in sources:
        write(pages / place_of(source), with_links((tree / source).read_text(), source, sources))
    write(pages / "man/index.md", index_of_manual(sorted(add_manual(pages, manuals))))
    write(pages / "python/index.md", python_page((tree / STUB).exists()))
    report = tree / REPORT
    if report.exists():
        copy(report, pages / "benchmarks/report.html")
    write(pages / "benchmarks/index.md", benchmarks_page(report.exists()))


def place_of(source):
    """Where a page lies in the site. README.md is its front page."""
    return Path("index.md") if str(source) == HOME else source


def check_navigation(sources):
    """Ends the program if a page is in no menu: a reader would find it by searching only."""
    navigation = NAVIGATION.read_text()
    missing = [str(source) for source in sources if f": {place_of(source)}\n" not in navigation]
    if missing:
        sys.exit(f"no menu has {', '.join(missing)}: add each to `nav` in {NAVIGATION}")


def with_links(text, source, sources):
    """The text of a page, where names of other pages outside blocks of code are links to them."""
    known = {str(page) for page in sources}
    start = place_of(source).parent

    def link(match):
        name = match[1]
        if name not in known or name == str(source):
            return match[0]
        return f"[`{name}`]({os.path.relpath(place_of(Path(name)), start)})"

    lines, fenced = [], False
    for line in text.splitlines():
        if FENCE.match(line):
            fenced = not fenced
        is_code = fenced or line.startswith("    ")
        lines.append(line if is_code else QUOTED.sub(link, line))
    return "\n".join(lines) + "\n"


def add_manual(pages, manuals):
    """Writes a page for each man page; returns (name, section, what it does) of each."""
    added = set()
    for folder in manuals:
        for file in sorted(folder.glob("man*/*")):
            if file.read_text().startswith(".so "):  # another name of a page
                continue
            command = ["mandoc", "-Thtml", "-Ofragment,man=%N.%S.html", file]
            html = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            name, section = file.stem, file.suffix[1:]
            title = f"{name}({section})"
            write(pages / "man" / f"{name}.{section}.md", f"---\ntitle: {title}\n---\n\n# {title}\n\n{raw(html)}\n")
            added.add((name, section, purpose_of(file)))
    return added


def raw(html):
    """HTML that Markdown leaves alone: it takes an empty line for the end of the block."""
    return "<div class=\"man-page\">" + re.sub(r"\n\s*\n", "\n", html).strip() + "</div>"


def purpose_of(file):
    """What stands behind the dash of the section NAME."""
    text = subprocess.run(["mandoc", "-Tutf8", file], check=True, capture_output=True, text=True).stdout
    text = re.sub(".\b", "", text)
    found = re.search(r"^NAME\n(.+?)\n\n", text, re.MULTILINE | re.DOTALL)
    words = " ".join(found[1].split()) if found else ""
    return re.split(r" [-–—] ", words, maxsplit=1)[-1]


def index_of_manual(entries):
    rows = [f"| [{name}({section})]({name}.{section}.md) | {purpose.replace('|', chr(92) + '|')} |" for name, section, purpose in entries]
    none = "There are none in this build: `make docs` makes them of the programs that it can build.\n"
    return "# Man pages\n\n" + ("\n".join(["| page | purpose |", "|---|---|", *rows]) + "\n" if rows else none)


def python_page(is_built):
    title = "# The Python package\n\n"
    if is_built:
        return title + "The tutorial is [`docs/python.md`](../docs/python.md).\n\n::: wherry\n\n::: wherry.aio\n"
    return title + "It is not part of this build: `make build` builds it if `scripts/setup test` has installed what it needs.\n"


def benchmarks_page(has_report):
    if has_report:
        return "# The report of this machine\n\nMade by `make bench`: [open the report](report.html).\n"
    return "# The report of this machine\n\nNone has been made yet. `make bench` measures; then `make docs` shows its report here.\n"


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(folder) for folder in sys.argv[2:-1]], Path(sys.argv[-1]))
