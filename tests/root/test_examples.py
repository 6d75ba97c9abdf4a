# SPDX-License-Identifier: Apache-2.0
"""The examples under examples/root, by the commands that stand in their first lines and in docs/root.md."""

import os
import re
import shlex
import socket
import struct
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import uproot
from root_file import BIN, TIMEOUT

SOURCE = Path(__file__).resolve().parents[2]
EXAMPLES = SOURCE / "examples/root"
DOCUMENT = SOURCE / "docs/root.md"


def commands(path, *, holding=""):
    """The lines to be typed that a document or a program's first comment shows: those that are indented."""
    shown = re.findall(r"^(?:// )? {2,}((?:wherry|root)\S* .*)$", path.read_text(), re.MULTILINE)
    return [line for line in shown if holding in line]


def words(command):
    return shlex.split(command, comments=True)


@pytest.fixture
def place(tmp_path):
    """A folder to type in, with ports of its own, where `wherry`, `python3` and the examples are found."""
    (tmp_path / "worker.py").symlink_to(EXAMPLES / "worker.py")
    (tmp_path / "examples").symlink_to(SOURCE / "examples")
    path = f"{BIN}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ROOTENV", "LD_LIBRARY"))}
    environment |= {"PATH": path, "WHERRY_JOB": uuid.uuid4().hex, "PYTHONWARNINGS": "ignore"}

    def type_in(command):
        return subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=tmp_path, env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    type_in.folder = tmp_path
    return type_in


@contextmanager
def running(process):
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def serving(place, command):
    """A wherry-merge that is ready when the block begins, and must have merged everything when it has ended."""
    with running(place(command)) as server:
        assert "listening" in server.stderr.readline()
        yield server
        output, errors = server.communicate(timeout=TIMEOUT)
        assert server.returncode == 0, output + errors


def succeed(*processes):
    for process in processes:
        output, errors = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, output + errors


def columns(path, tree, *order):
    """The branches of a tree, sorted: which worker was merged first is nobody's business."""
    with uproot.open(path) as file:
        arrays = file[tree].arrays(library="np")
    places = np.lexsort([arrays[name] for name in reversed(order)])
    return {name: values[places] for name, values in arrays.items()}


def test_threads_fill_one_tree(place):
    server, workers = commands(EXAMPLES / "threads.cc")
    with serving(place, server):
        succeed(place(workers))
    tree = columns(place.folder / "out.root", "tree", "thread", "entry")
    assert (tree["thread"] == np.repeat(np.arange(4), 50_000)).all()
    assert (tree["entry"] == np.tile(np.arange(50_000), 4)).all()
    sizes = np.array([len(hits) for hits in tree["hits"]])
    assert (sizes == tree["entry"] % 10).all()
    expected = np.repeat(tree["thread"].astype("f4") + np.sqrt(tree["entry"].astype("f4")), sizes)
    assert (np.concatenate(tree["hits"]) == expected).all()
    with uproot.open(place.folder / "out.root") as file:
        assert (file["sizes"].values() == 20_000).all()


def test_a_worker_in_python(place):
    server, worker = commands(EXAMPLES / "worker.py")
    with serving(place, server):
        succeed(place(worker))
    tree = columns(place.folder / "out.root", "samples", "number")
    assert (tree["seed"] == 7).all() and (tree["number"] == np.arange(5000)).all()
    assert (tree["values"] == np.random.default_rng(7).normal(size=(5000, 3))).all()
    with uproot.open(place.folder / "out.root") as file:
        expected, _ = np.histogram(tree["values"][:, 0], bins=100, range=(-5, 5))
        assert (file["first"].values() == expected).all()


def check_simulation(path, runs, events):
    """What the file says must agree with itself, in every step."""
    steps = columns(path, "steps", "run", "event", "z")
    event = columns(path, "events", "run", "event")
    assert (event["run"] == np.repeat(runs, events)).all()
    assert (event["event"] == np.tile(np.arange(events), len(runs))).all()
    first = np.searchsorted(steps["run"] * events + steps["event"], event["run"] * events + event["event"])
    assert (np.diff(np.append(first, len(steps["run"]))) == event["steps"]).all()
    assert event["steps"].min() > 0
    assert np.allclose(np.add.reduceat(steps["deposit"], first), event["deposit"])
    return steps, event


def check_depth(path, steps):
    """The histogram is what the steps add up to."""
    with uproot.open(path) as file:
        expected, _ = np.histogram(steps["z"], bins=50, range=(0, 10), weights=steps["deposit"])
        assert np.allclose(file["depth"].values(), expected)


def test_an_event_loop_that_knows_nothing_of_wherry(place):
    server, run1 = commands(EXAMPLES / "events.cc", holding="wherry")
    run2 = re.sub(r" 1 5000.*", " 2 5000", run1)
    with serving(place, server):
        succeed(place(run1), place(run2))
    steps, _ = check_simulation(place.folder / "out.root", runs=[1, 2], events=5000)
    check_depth(place.folder / "out.root", steps)


def test_the_same_program_writes_an_ordinary_file(place):
    succeed(place("root_events run1.root 1 3000"))
    steps, _ = check_simulation(place.folder / "run1.root", runs=[1], events=3000)
    check_depth(place.folder / "run1.root", steps)


def test_the_url_is_ours_at_every_start(place):
    """ROOT loads our library because a handler says so, which must survive that: what it had become was chance."""
    for _ in range(12):
        _, errors = place("env WHERRY_CONNECT_TIMEOUT=0 wherry run -- root_events wherry://0:1095//out.root 1 1").communicate(timeout=TIMEOUT)
        assert "nobody listens on port 1095" in errors


@pytest.mark.parametrize("name", ["threads.cc", "worker.py", "events.cc"])
def test_the_document_shows_the_same_command(name):
    [command] = commands(EXAMPLES / name, holding="run --")
    shown = " ".join(words(command)).replace(" worker.py", " examples/root/worker.py")
    assert f"`{shown}`" in DOCUMENT.read_text()


class Guest:
    """A client of ROOT's server that says nothing: without any, the server ends."""

    def __init__(self, port, server):
        while True:
            try:
                self.socket = socket.create_connection(("localhost", port))
                return
            except ConnectionRefusedError:
                assert server.poll() is None, server.communicate()

    def leave(self):
        message = struct.pack(">i", 3) + b"Finished\x00"  # kMESS_STRING
        self.socket.sendall(struct.pack(">i", len(message)) + message)


def test_a_pmerge_job_before_and_after(place, port):
    """The same two runs by ROOT's own server and by wherry-merge, as docs/root.md says: the same entries."""
    before_server, before_worker, after_server, after_worker = commands(DOCUMENT, holding="9090")
    assert "fastMergeServer.C" in before_server and "?pmerge=" in before_worker
    changed = [word.replace("out.root?pmerge=localhost:9090", "wherry://0:9090//out.root") for word in words(before_worker)]
    assert words(after_worker) == ["wherry", "run", "--", *changed], "more than one string and what starts the program"

    import ROOT

    [original] = Path(str(ROOT.gROOT.GetTutorialDir())).rglob("fastMergeServer.C")
    (place.folder / "fastMergeServer.C").write_text(original.read_text().replace("9090", str(port)))
    with running(place(before_server)) as server:
        guest = Guest(port, server)
        worker = before_worker.replace("9090", str(port))
        succeed(place(worker), place(worker.replace(" 1 5000", " 2 5000")))
        guest.leave()
        succeed(server)
    (place.folder / "out.root").rename(place.folder / "before.root")

    with serving(place, after_server):
        succeed(place(after_worker), place(after_worker.replace(" 1 5000", " 2 5000")))
    before = check_simulation(place.folder / "before.root", runs=[1, 2], events=5000)
    after = check_simulation(place.folder / "out.root", runs=[1, 2], events=5000)
    for ours, theirs in zip(after, before):
        assert ours.keys() == theirs.keys()
        for name in ours:
            assert (ours[name] == theirs[name]).all(), name
    check_depth(place.folder / "out.root", after[0])
    with uproot.open(place.folder / "before.root") as file:
        assert file["depth"].values().sum() > 1.5 * before[0]["deposit"].sum(), "the stock server counts no more twice"
