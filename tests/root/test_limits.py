# SPDX-License-Identifier: Apache-2.0
"""wherry-merge's limits (docs/limits.md): what is beyond one gets a clear error, and the others go on."""

import re
import resource
import subprocess
from contextlib import contextmanager

import pytest
import uproot
from root_file import BIN, PATIENCE, start_python

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
        _, errors = server.communicate(timeout=PATIENCE)
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
        text, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        served = int(text)
        # Six descriptors each, and some for the server itself.
        assert (DESCRIPTORS - 30) // 6 <= served <= DESCRIPTORS // 6
        assert errors.count("refused this connector") == 40 - served
    with uproot.open(output) as file:
        assert sorted(file["t"]["x"].array(library="np")) == list(range(served))


TOO_LARGE = """
file = ROOT.TFile.Open(sys.argv[1], "RECREATE", "", 0)
tree = ROOT.TTree("t", "t")
x = array.array("d", [0] * 1000)
tree.Branch("x", x, "x[1000]/D")
for entries in (100, 1000):
    for i in range(entries):
        tree.Fill()
    print(file.Write() > 0)
"""


def test_a_file_that_is_too_large_is_an_error_and_the_one_before_it_is_merged(tmp_path):
    with merging(tmp_path, "--max-file", "4MiB", status=3) as (address, output, _):
        process = start_python(tmp_path, TOO_LARGE, address + "//out.root")
        text, errors = process.communicate(timeout=PATIENCE)
        assert text.split() == ["True", "False"]
        assert "the server takes files of at most 4194304 bytes" in errors
    with uproot.open(output) as file:
        assert file["t"].num_entries == 100


@pytest.mark.parametrize(
    "option",
    ["--batch=0", "--batch=4097", "--threads=0", "--threads=65", "--shards=0", "--shards=65", "--max-file=1MiB",
     "--max-file=2TiB"],
)
def test_numbers_beyond_their_range_are_refused(tmp_path, option):
    command = [BIN / "wherry-merge", "wherry://*:*", "-o", tmp_path / "out.root", option]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
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
    _, errors = start_python(tmp_path, NESTED, tmp_path / "deep.root", levels, plain=True).communicate(timeout=PATIENCE)
    with merging(tmp_path, status=status) as (address, *_):
        poster = [BIN / "root_poster", address, tmp_path / "deep.root"]
        run = subprocess.run(poster, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == (0 if status == 0 else 1), errors + run.stderr
    assert ("directories that are too deep" in run.stderr) == (status != 0)


def test_an_output_that_cannot_be_written_is_refused_before_anybody_connects(tmp_path):
    command = [BIN / "wherry-merge", "wherry://*:*", "-o", tmp_path / "no such folder/out.root"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 2 and "no such folder: No such file or directory" in run.stderr
