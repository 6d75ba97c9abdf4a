# SPDX-License-Identifier: Apache-2.0
"""Programs and classes of ROOT's own that write files, with only their URL changed."""

import pytest
import uproot
from root_file import PATIENCE, start_python
from test_limits import merging

SNAPSHOT = """
if "threads" in sys.argv:
    ROOT.EnableImplicitMT(2)
frame = ROOT.RDataFrame(10000).Define("x", "(int)rdfentry_")
again = frame.Snapshot(sys.argv[2], sys.argv[1])
print(again.Count().GetValue(), again.Sum("x").GetValue())
"""


@pytest.mark.parametrize("words", [["folder/t"], ["t", "threads"]])
def test_a_data_frame_that_is_saved_can_be_read_again(tmp_path, words):
    with merging(tmp_path, "--workers", "1") as (address, output, _):
        process = start_python(tmp_path, SNAPSHOT, address + "//out.root", *words)
        text, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        assert [float(word) for word in text.split()] == [10000, sum(range(10000))], errors
        assert "Error" not in errors
    with uproot.open(output) as file:
        assert sorted(file[words[0]]["x"].array(library="np")) == list(range(10000))


READ_BACK = """
def write(value):
    file = ROOT.TFile.Open(sys.argv[1], "RECREATE")
    tree = ROOT.TTree("t", "t")
    x = array.array("i", [value])
    tree.Branch("x", x, "x/I")
    tree.Fill()
    file.Write()
    file.Close()
def read():
    try:
        file = ROOT.TFile.Open(sys.argv[1])
        print(file.ClassName(), file.Get("t").GetEntries())
    except OSError:
        print("refused")
read()
for value in range(2):
    write(value)
    read()
"""


@pytest.mark.parametrize("directory", [False, True])
def test_what_a_process_has_written_it_can_read(tmp_path, directory):
    with merging(tmp_path, "--workers", "2", directory=directory) as (address, output, _):
        process = start_python(tmp_path, READ_BACK, address + "//elsewhere/name.root")
        text, errors = process.communicate(timeout=PATIENCE)
        assert text.splitlines() == ["refused", "TFile 1", "TFile 2"], errors
        assert errors.count("can only be written") == 1
    assert uproot.open(output / "name.root" if directory else output)["t"].num_entries == 2
