# SPDX-License-Identifier: Apache-2.0
"""The program as it is called: what it writes, and that it fails with one clear line."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import synthetic

REPORT = Path(__file__).with_name("report.py")


def run(*arguments, **options):
    return subprocess.run([sys.executable, REPORT, *map(str, arguments)], capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "all.json"
    path.write_text(json.dumps(synthetic.results()))
    return path


@pytest.fixture(scope="module")
def drawn(results):
    """A folder with the page and plots/, of all results: drawing them takes most of the time here."""
    pytest.importorskip("matplotlib", reason="scripts/setup bench installs it")
    folder = results.parent
    done = run(results, "--to", folder / "report.html", "--to", f"{folder}/plots/")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def page(drawn):
    return (drawn / "report.html").read_text()


class Page(HTMLParser):
    """Collects ids and everything that would be fetched, and checks that tags are closed in order."""

    VOID = {"meta", "br", "use", "path", "rect", "circle"}

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "data", "srcset"):
                self.links.append(value)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_page_needs_nothing_but_itself(page):
    parsed = Page(page)
    assert all(link.startswith("#") for link in parsed.links)
    assert "<script" not in page and "@import" not in page
    assert not re.search(r"url\((?!#)", page)


def test_ids_of_the_page_are_unique_and_every_reference_has_its_target(page):
    parsed = Page(page)
    assert len(parsed.ids) == len(set(parsed.ids))
    references = {link[1:] for link in parsed.links} | set(re.findall(r"url\(#([\w.-]+)\)", page))
    assert references <= set(parsed.ids)


def test_the_page_has_every_figure_and_says_what_is_missing(page):
    document = synthetic.results()
    for system in {row["system"] for row in document["rows"]}:
        assert f"<th>{system.removeprefix('limit:')}</th>" in page
    assert "no mpicc" in page and "the best calls of ucx" in page and "Made-up CPU" in page


def test_the_page_says_which_processor_with_its_caches_and_who_shares_them(page):
    assert page.count("Maker family 6 model 7: L1d 48 KiB, L2 2 MiB, L3 32 MiB of cores 0-1") == 2


def test_the_page_says_which_placement_of_the_cores_counts(page):
    assert "cores 0 and 1: 115 ns, 50.3 GB/s (75 %) of 100 probes; also 530 ns, 24.1 GB/s (25 %)" in page
    assert "12 samples taken again for it; 1 samples count that were taken elsewhere" in page


def test_where_the_cores_were_not_probed_the_page_says_why(tmp_path):
    pytest.importorskip("matplotlib")
    document = synthetic.results()
    document["rows"] = [row for row in document["rows"] if row["bench"] == "connect"]
    document["environment"]["placement"] = {"not_probed": "there are no two cores"}
    (tmp_path / "one.json").write_text(json.dumps(document))
    assert run(tmp_path / "one.json", "--to", tmp_path / "one.html").returncode == 0
    assert "not probed: there are no two cores" in (tmp_path / "one.html").read_text()


def test_plots_follow_the_colours_of_the_page(page):
    pictures = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert "var(--wherry)" in pictures
    assert not re.search(r"#[0-9a-f]{6}\b", pictures)


def test_a_text_of_the_results_cannot_break_the_page(tmp_path):
    pytest.importorskip("matplotlib")
    document = synthetic.results()
    document["rows"] = [row for row in document["rows"] if row["bench"] == "connect"]
    for row in document["rows"]:
        row["version"] = "<script>&"
    document["environment"]["not_found"] = {"<b>": "<script>&"}
    (tmp_path / "evil.json").write_text(json.dumps(document))
    assert run(tmp_path / "evil.json", "--to", tmp_path / "evil.html").returncode == 0
    text = (tmp_path / "evil.html").read_text()
    assert "<script>" not in text
    Page(text)


def test_a_folder_gets_each_plot_as_svg_and_png(drawn):
    for path in (drawn / "plots").glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    names = {path.stem for path in (drawn / "plots").iterdir()}
    assert {"stream-handover-gb-per-s", "stream-touched-gb-per-s", "latency-awake-handover", "many-60-touched"} <= names
    assert {"mailbox-handover-48-started", "mailbox-handover-mailbox-equal", "mailbox-receive-handover"} <= names
    assert {"mpi-latency-48-ranks", "mpi-halo-1-2-ranks", "mpi-memory-48-ranks"} <= names
    assert {"zmq-handover-gb-per-s", "zmq-handover-cpu-s-per-gb", "zmq-handover-ns-mean"} <= names


def test_the_same_results_give_the_same_pictures(drawn, tmp_path):
    rows = [row for row in synthetic.results()["rows"] if row["bench"] in ("stream", "zmq")]
    (tmp_path / "some.json").write_text(json.dumps({"environment": {}, "rows": rows}))
    assert run(tmp_path / "some.json", "--to", f"{tmp_path}/plots/").returncode == 0
    again = list((tmp_path / "plots").glob("*.svg"))
    assert len(again) >= 5
    for path in again:
        assert path.read_text() == (drawn / "plots" / path.name).read_text()


def test_a_run_of_one_system_at_one_size_is_drawn_too(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [row for row in synthetic.results()["rows"] if row["system"] == "wherry" and row["size"] == 64]
    (tmp_path / "small.json").write_text(json.dumps({"environment": {}, "rows": rows}))
    done = run(tmp_path / "small.json", "--to", tmp_path / "small.html", "--to", tmp_path / "small.png")
    assert done.returncode == 0, done.stderr


def crossings_in(picture):
    """Where dotted lines stand, in the picture's own measure."""
    return [float(x) for x in re.findall(r'id="crossing[^"]*">\s*<path d="M (\S+)', picture.read_text())]


def test_files_show_where_the_host_overtakes_the_cache_and_the_card_for_reads_and_for_writes(drawn, page):
    crossed = {path.stem: crossings_in(path) for path in (drawn / "plots").glob("file-*.svg")}
    # At first touch wherry::files has a crossing, too.
    expected = {"hit": 2, "hit-threads": 2, "first": 3, "cold": 2, "write": 2}
    assert {name: len(places) for name, places in crossed.items() if places} == {
        f"file-{mode}-over-size-1": count for mode, count in expected.items()}
    # Of the sizes 512 and 65536.
    said = {pair: float(size) for size, pair in re.findall(r"Dotted: from about (\S+) kB a call on (\S+ is faster than \S+)\.", page)}
    assert set(said) == {f"wherry-{kind}-host is faster than wherry-{kind}-{other}"
                         for kind, other in (("api", "cache"), ("mount", "cache"), ("mount", "card"))}
    assert all(0.5 < size < 65 for size in said.values())
    mount = {other: said[f"wherry-mount-host is faster than wherry-mount-{other}"] for other in ("cache", "card")}
    assert mount["card"] < mount["cache"]  # the faster cache is overtaken later
    assert crossed["file-write-over-size-1"] == sorted(crossed["file-write-over-size-1"], reverse=True)


def test_a_cache_that_is_never_overtaken_has_no_crossing(tmp_path):
    pytest.importorskip("matplotlib")
    document = synthetic.results()
    kept = ("wherry-mount-cache", "wherry-mount-host")
    rows = [row for row in document["rows"] if row["bench"] == "file" and row["mode"] == "write" and row["system"] in kept]
    document["rows"] = [row | {"median": 1 + (row["system"] == kept[0])} for row in rows]
    (tmp_path / "level.json").write_text(json.dumps(document))
    assert run(tmp_path / "level.json", "--to", f"{tmp_path}/plots/").returncode == 0
    assert crossings_in(tmp_path / "plots/file-write-over-size-1.svg") == []


def test_files_of_threads_are_drawn_over_their_number(drawn):
    assert (drawn / "plots" / "file-hit-threads-over-senders-65536.svg").exists()


def test_a_system_nobody_has_heard_of_is_drawn_too(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [row | {"system": "novel"} for row in synthetic.results()["rows"] if row["system"] == "tcp"]
    (tmp_path / "novel.json").write_text(json.dumps({"environment": {}, "rows": rows}))
    done = run(tmp_path / "novel.json", "--to", tmp_path / "novel.html")
    assert done.returncode == 0, done.stderr
    assert "novel" in (tmp_path / "novel.html").read_text()


def test_the_table_in_markdown_needs_no_plots(results, tmp_path):
    without = tmp_path / "without"
    without.mkdir()
    (without / "matplotlib.py").write_text("raise ModuleNotFoundError('no', name='matplotlib')\n")
    done = run(results, "--to", tmp_path / "table.md", env={"PYTHONPATH": str(without)})
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "table.md").read_text().splitlines()
    assert len({line.count("|") for line in table}) == 1
    assert any(line.startswith("| stream, 64 B |") for line in table)


def test_without_matplotlib_a_plot_says_how_to_get_it(results, tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('no', name='matplotlib')\n")
    done = run(results, "--to", tmp_path / "plot.svg", env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "scripts/setup bench" in done.stderr


@pytest.mark.parametrize("out", ["report.pdf", "report"])
def test_another_ending_is_refused(results, tmp_path, out):
    done = run(results, "--to", tmp_path / out)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert ".html, .svg, .png, .md" in done.stderr


def test_a_bad_file_gives_one_line_and_no_page(tmp_path):
    (tmp_path / "bad.json").write_text("{")
    done = run(tmp_path / "bad.json", "--to", tmp_path / "report.html")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("report: ") and "bad.json: not JSON" in done.stderr
    assert not (tmp_path / "report.html").exists()


def test_an_output_that_cannot_be_written_gives_one_line(results, tmp_path):
    done = run(results, "--to", tmp_path / "none" / "table.md")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "table.md: No such file" in done.stderr
