# SPDX-License-Identifier: Apache-2.0
"""Hooks of MkDocs: what the pages of the API reference need, which mkdoxy makes of the headers."""

import re

API = "api/"
# Doxygen numbers what has no name, and mkdoxy links to that number.
LINK_TO_UNNAMED = re.compile(r"\[([^\]]*)\]\([^)]*#[a-z]+-@\d+\)")
SOURCE = re.compile(r"_source\.md$")


def on_page_markdown(markdown, page, **_):
    """Removes links to what has no name, and has a search find a guide before the reference and no listing."""
    if not page.file.src_uri.startswith(API):
        return markdown
    if SOURCE.search(page.file.src_uri):
        page.meta["search"] = {"exclude": True}
    else:
        page.meta["search"] = {"boost": 0.5}
    return LINK_TO_UNNAMED.sub(r"\1", markdown)
