#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what `wherry bench --json` wrote: plots, one HTML page that needs nothing else, or a table in Markdown."""

import argparse
import sys
from pathlib import Path

import results as result_files
from results import ReportError, Results

PICTURES = (".svg", ".png")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="report.py", description=__doc__)
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE.json", help="results of wherry bench, one file per run"
    )
    parser.add_argument(
        "--to",
        action="append",
        required=True,
        metavar="OUT",
        help=".html: the page; .svg, .png: a picture of the first plot, and of the others in files beside "
        "it; .md: a table; a folder (it ends in /): every plot as SVG and PNG",
    )
    options = parser.parse_args(arguments)
    try:
        results = result_files.read(options.files)
        for out in options.to:
            write(results, out)
    except ReportError as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"report: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def write(results: Results, out: str) -> None:
    path = Path(out)
    if out.endswith("/"):
        path.mkdir(parents=True, exist_ok=True)
        for plot in plots_of(results):
            save(plot, [path / f"{plot.name}{ending}" for ending in PICTURES])
    elif path.suffix in PICTURES:
        # As many files as plots: a picture of everything would be too small to read.
        for index, plot in enumerate(plots_of(results)):
            save(plot, [path if index == 0 else path.with_name(f"{path.stem}-{plot.name}{path.suffix}")])
    elif path.suffix == ".html":
        import page

        path.write_text(page.html(results, plots_of(results)))
    elif path.suffix == ".md":
        import markdown

        path.write_text(markdown.table(results))
    else:
        raise ReportError(f"{out}: the name must end in .html, .svg, .png, .md, or in / for a folder")


def plots_of(results: Results) -> list:
    try:
        import plots
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] == "matplotlib":
            raise ReportError("plots need matplotlib: run scripts/setup bench, or pip install matplotlib") from error
        raise
    found = list(plots.plots(results))
    if not found:
        raise ReportError("nothing to plot: no rows of a known bench and metric")
    return found


def save(plot, paths: list[Path]) -> None:
    import canvas

    figure = plot.draw()
    for path in paths:
        canvas.save(figure, path)


if __name__ == "__main__":
    sys.exit(main())
