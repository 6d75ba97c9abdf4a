# SPDX-License-Identifier: Apache-2.0
"""wherry-merge's limits (docs/limits.md): what is beyond one gets a clear error, and the others go on."""

import re
import resource
import subprocess
from contextlib import contextmanager

import pytest
import uproot
from root_file import BIN, TIMEOUT, start_python

DESCRIPTORS = 100


@contextmanager
def merging(tmp_path, *options, descriptors=None, status=0, directory=False):
    """A server that must end with that status when the block has ended. Yields its address and output, and a list that
    has what it said on standard error in the end."""

    def limit():
        if descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    output = tmp_path / ("merged" if directory else "out.root")
    if directory:
        output.mkdir()
    command = [BIN / "wherry-merge", "wherry://*:*", "-o", output, *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
    try:
        address = re.search(r"listening on (\S+)", server.stderr.readline())[1].replace("wherry+shm:", "wherry:")
        said = []
        yield address, output, said
        _, errors = server.communicate(timeout=TIMEOUT)
        said.append(errors)
        assert server.returncode == status, errors
    finally:
        server.kill()
        server.communicate()


MANY_AT_ONCE = """
files = []
for i in range(40):
    try:
        files.append(ROOT.TFile.Open(sys.argv[1], "RECREATE"))
    except OSError:
        pass
x = array.array("d", [0])
for x[0], file in enumerate(files):
    file.cd()
    tree = ROOT.TTree("t", "t")
    tree.Branch("x", x, "x/D")
    tree.Fill()
    file.Write()
    file.Close()
    assert not file.TestBit(ROOT.TFile.kWriteError)
print(len(files))
"""


def test_workers_beyond_the_servers_descriptors_are_refused_and_the_others_go_on(tmp_path):
    with merging(tmp_path, descriptors=DESCRIPTORS) as (address, output, _):
        process = start_python(tmp_path, MANY_AT_ONCE, address + "//out.root")
        text, errors = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, errors
        served = int(text)
        # Four descriptors each, and some for the server itself.
        assert (DESCRIPTORS - 30) // 4 <= served <= DESCRIPTORS // 4
        assert errors.count("refused this connector") == 40 - served
    with uproot.open(output) as file:
        assert sorted(file["t"]["x"].array(library="np")) == list(range(served))


TOO_LARGE = """
file = ROOT.TFile.Open(sys.argv[1], "RECREATE", "", 0)
for bins in (1000, 1000000):
    histogram = ROOT.TH1D("h" + str(bins), "", bins, 0, 1)
    histogram.Fill(0.5)
    print(file.Write() > 0)
"""


def test_a_file_that_is_too_large_is_an_error_and_the_one_before_it_is_merged(tmp_path):
    with merging(tmp_path, "--max-file", "4MiB", status=3) as (address, output, _):
        process = start_python(tmp_path, TOO_LARGE, address + "//out.root")
        text, errors = process.communicate(timeout=TIMEOUT)
        assert text.split() == ["True", "False"]
        assert "the server takes files of at most 4194304 bytes" in errors and "wherry-merge --max-file" in errors
    with uproot.open(output) as file:
        assert file.keys() == ["h1000;1"]


IN_PARTS = """
file = ROOT.TFile.Open(sys.argv[1], "RECREATE", "", 0)
trees = []
x = array.array("d", [0] * 1000)
for name in ("t", "folder/u"):
    (file.mkdir("folder") if "/" in name else file).cd()
    trees.append(ROOT.TTree(name[-1], "of eight MB"))
    trees[-1].Branch("x", x, "x[1000]/D")
    trees[-1].SetAutoSave(int(sys.argv[2]))
file.cd()
histogram = ROOT.TH1D("h", "", 10, 0, 10)
for i in range(int(sys.argv[3])):
    x[0] = i
    histogram.Fill(i % 10)
    for tree in trees:
        tree.Fill()
print(file.GetPosted(), histogram.GetEntries(), trees[0].GetAutoSave(), trees[0].GetAutoFlush())
assert file.Write() > 0
file.Close()
assert not file.TestBit(ROOT.TFile.kWriteError)
"""


WITH_A_HISTOGRAM = """
file = ROOT.TFile.Open(sys.argv[1], "RECREATE", "", 0)
tree = ROOT.TTree("t", "of eight MB")
x = array.array("d", [0] * 1000)
tree.Branch("x", x, "x[1000]/D")
histogram = ROOT.TH1D("h", "", 10, 0, 10)
for i in range(1000):
    if i == int(sys.argv[2]):
        histogram.Write()
    histogram.Fill(i % 10)
    tree.Fill()
print(file.GetPosted(), file.Write() > 0)
"""


@pytest.mark.parametrize("at", [0, 150])
def test_a_file_that_holds_more_than_trees_is_not_divided(tmp_path, at):
    """The histogram would be counted twice: as it was in the part, and as it is in the end."""
    with merging(tmp_path, "--max-file", "4MiB", status=3) as (address, *_):
        process = start_python(tmp_path, WITH_A_HISTOGRAM, address + "//out.root", at)
        text, errors = process.communicate(timeout=TIMEOUT)
        assert text.split() == ["0", "False"] and "wherry-merge --max-file" in errors


@pytest.mark.parametrize("auto_save", [-300000000, 10])
def test_a_tree_larger_than_the_largest_file_is_handed_over_in_parts(tmp_path, auto_save):
    entries = 1000
    with merging(tmp_path, "--max-file", "4MiB") as (address, output, _):
        process = start_python(tmp_path, IN_PARTS, address + "//out.root", auto_save, entries)
        text, errors = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, errors
        posted, filled, *habits = (float(word) for word in text.split())
        assert posted > 4, "16 MB in parts of less than 4"
        assert filled == entries, "a histogram that the program has not written yet is as it was"
        assert habits[0] in (auto_save, float(auto_save)) and habits[1] in (-30000000, auto_save)
        assert errors.count("handed over in parts") == 1
    with uproot.open(output) as file:
        for name in ("t", "folder/u"):
            assert list(file[name]["x"].array(library="np")[:, 0]) == list(range(entries))
        assert list(file["h"].values()) == [entries / 10] * 10


@pytest.mark.parametrize(
    "option",
    ["--batch=0", "--batch=4097", "--threads=0", "--threads=65", "--shards=0", "--shards=65", "--max-file=1MiB",
     "--max-file=2TiB"],
)
def test_numbers_beyond_their_range_are_refused(tmp_path, option):
    command = [BIN / "wherry-merge", "wherry://*:*", "-o", tmp_path / "out.root", option]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert run.returncode == 2 and "not in range" in run.stderr


NESTED = """
file = ROOT.TFile.Open(sys.argv[1], "RECREATE")
folder = file
for level in range(int(sys.argv[2])):
    folder = folder.mkdir("d")
folder.WriteObject(ROOT.TNamed("here", "here"), "here")
file.Close()
"""


@pytest.mark.parametrize("levels, status", [(60, 0), (70, 3)])
def test_directories_inside_each_other(tmp_path, levels, status):
    _, errors = start_python(tmp_path, NESTED, tmp_path / "deep.root", levels, plain=True).communicate(timeout=TIMEOUT)
    with merging(tmp_path, status=status) as (address, *_):
        poster = [BIN / "root_poster", address, tmp_path / "deep.root"]
        run = subprocess.run(poster, capture_output=True, text=True, timeout=TIMEOUT)
    assert run.returncode == (0 if status == 0 else 1), errors + run.stderr
    assert ("directories that are too deep" in run.stderr) == (status != 0)


def test_an_output_that_cannot_be_written_is_refused_before_anybody_connects(tmp_path):
    command = [BIN / "wherry-merge", "wherry://*:*", "-o", tmp_path / "no such folder/out.root"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert run.returncode == 2 and "no such folder: No such file or directory" in run.stderr


FLUSHED_AT_ONCE = """
import numpy
file = ROOT.TFile.Open(sys.argv[1], "RECREATE")
tree = ROOT.TTree("t", "t")
tree.SetAutoFlush(0)
x = numpy.zeros(100)
for i in range(30):
    tree.Branch(f"x{i}", x, "x[100]/D", 1 << 20)
random = numpy.random.default_rng(1)
for _ in range(100):
    x[:] = random.random(100)
    tree.Fill()
assert file.Write() > 0
file.Close()
"""


def test_a_tree_that_is_flushed_by_write_keeps_its_habits(tmp_path):
    with merging(tmp_path, "--workers", "1", "--max-file", "4MiB") as (address, output, _):
        process = start_python(tmp_path, FLUSHED_AT_ONCE, address + "//out.root")
        _, errors = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, errors
    with uproot.open(output) as file:
        assert (file["t"].member("fAutoSave"), file["t"].num_entries) == (-300000000, 100)
