# SPDX-License-Identifier: Apache-2.0
"""Turns a plot's SVG file into a piece of a page: colours that follow the page's, no header, no clashing ids."""

import re

import systems

# Only what something refers to keeps its id.
REFERENCE = re.compile(r'(?:url\(#|href="#)([\w.-]+)')


def inline(text: str, name: str, title: str) -> str:
    """`name` is unique on the page."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = text.replace("<svg", f'<svg role="img" aria-label="{title}"', 1)
    text = name_systems(text)
    return exchange_colours(own_ids(text, name))


def natural_width(text: str) -> float:
    """In points, as drawn."""
    return float(re.search(r'viewBox="0 0 ([\d.]+)', text)[1])


def name_systems(text: str) -> str:
    """A line says whose it is when the pointer is on it."""
    return re.sub(r'<g id="system-([^"]+)">', r'<g class="system"><title>\1</title>', text)


def own_ids(text: str, name: str) -> str:
    used = set(REFERENCE.findall(text))
    text = re.sub(r' id="([^"]+)"', lambda match: f' id="{name}-{match[1]}"' if match[1] in used else "", text)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)


def exchange_colours(text: str) -> str:
    names = {light: name for name, (light, _) in systems.colour_pairs().items()}
    return re.sub(r"#[0-9a-f]{6}\b", lambda match: f"var(--{names[match[0]]})" if match[0] in names else match[0], text)


def colour_variables(dark: bool) -> str:
    """The CSS that gives each colour its value."""
    return "".join(f"--{name}:{pair[1 if dark else 0]};" for name, pair in systems.colour_pairs().items())
