# SPDX-License-Identifier: Apache-2.0
"""A worker has finished when it says so, or ends well with nothing left unwritten; else the job is not whole."""

import re

import pytest
import uproot
from root_file import BIN, TIMEOUT, start, start_python
from test_limits import merging


def entries_of(output):
    with uproot.open(output) as file:
        return sorted(file["t"]["x"].array(library="np"))


BAD = [
    "segmentation violation",
    "gSystem->Exit(3)",
    "gSystem->Exit(0)",
    "exit(3)",
    "exit(3), static",
    "unwound by an exception",
    "return",
]


def leave(address, way):
    return start(BIN / "root_leaver", address + "//out.root", way)


def test_a_worker_that_leaves_before_it_has_written_everything_counts_as_lost(tmp_path):
    with merging(tmp_path, "--workers", str(len(BAD)), status=3) as (address, output, said):
        workers = {way: leave(address, way) for way in BAD}
        for worker in workers.values():
            worker.communicate(timeout=TIMEOUT)
    for way, worker in workers.items():
        # One that has ended before it is asked about has no command line any more.
        line = rf"is not whole: process {worker.pid}( \({BIN}/root_leaver \S+ {re.escape(way)}\))? went without finishing"
        assert re.search(line, said[-1]), (line, said)
    assert entries_of(output) == sorted([*range(100)] * len(BAD)), "what was handed over is there, and no more"


GOOD = [
    "all written, return",
    "all written, CloseFiles",
    "tree written, return",
    "fork",
]


def test_a_worker_that_ends_well_with_everything_written_has_finished(tmp_path):
    with merging(tmp_path, "--workers", str(len(GOOD))) as (address, output, _):
        workers = {way: leave(address, way) for way in GOOD}
        for way, worker in workers.items():
            _, errors = worker.communicate(timeout=TIMEOUT)
            assert worker.returncode == 0 and "Error" not in errors, way + errors
    assert entries_of(output) == sorted([*range(150)] * len(GOOD))


IN_PYTHON = """
def work():
    file = ROOT.TFile.Open(sys.argv[1], "RECREATE")
    tree = ROOT.TTree("t", "t")
    x = array.array("i", [0])
    tree.Branch("x", x, "x/I")
    for x[0] in range(100):
        tree.Fill()
    assert file.Write() > 0
    exec(sys.argv[2])
    return file, tree
kept = work()
"""
FAIL = ["raise ValueError", "sys.kept = file; sys.exit(3)"]


@pytest.mark.parametrize("ends, status", [(FAIL, 3), (["pass", "sys.kept = file; sys.exit(0)"], 0)], ids=["bad", "good"])
def test_a_python_worker_that_fails_counts_as_lost(tmp_path, ends, status):
    with merging(tmp_path, "--workers", str(len(ends)), status=status) as (address, output, said):
        workers = [start_python(tmp_path, IN_PYTHON, address + "//out.root", end) for end in ends]
        for worker in workers:
            worker.communicate(timeout=TIMEOUT)
    for worker in workers:
        assert (f"is not whole: process {worker.pid} " in said[-1]) == (status != 0), said
    assert entries_of(output) == sorted([*range(100)] * len(ends))


FORKED = """
import os
file = ROOT.TFile.Open(sys.argv[1], "RECREATE")
tree = ROOT.TTree("t", "t")
x = array.array("i", [0])
tree.Branch("x", x, "x/I")
tree.Fill()
assert file.Write() > 0
child = os.fork()
if child == 0:
    os._exit(file.Wait())
assert os.waitpid(child, 0)[1] == 0, "a child has waited for what its parent is told"
assert file.Wait()
file.Close()
"""


def test_a_forked_child_does_not_wait_for_its_parents_files(tmp_path):
    with merging(tmp_path, "--workers", "1") as (address, output, _):
        worker = start_python(tmp_path, FORKED, address + "//out.root")
        _, errors = worker.communicate(timeout=TIMEOUT)
        assert worker.returncode == 0, errors
    assert entries_of(output) == [0]
