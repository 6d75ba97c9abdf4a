# SPDX-License-Identifier: Apache-2.0
"""Programs and classes of ROOT's own that write files, with only their URL changed."""

from pathlib import Path

import numpy as np
import pytest
import ROOT
import uproot
from root_file import TIMEOUT, start, start_python
from test_limits import merging

TUTORIALS = Path(ROOT.gROOT.GetTutorialDir().Data())

SNAPSHOT = """
for tree in ("folder/one", "two"):
    if tree == "two":
        ROOT.EnableImplicitMT(2)
    frame = ROOT.RDataFrame(10000).Define("x", "(int)rdfentry_")
    again = frame.Snapshot(tree, sys.argv[1])
    print(again.Count().GetValue(), again.Sum("x").GetValue())
"""


def test_a_data_frame_that_is_saved_can_be_read_again(tmp_path):
    with merging(tmp_path, "--workers", "2") as (address, output, _):
        process = start_python(tmp_path, SNAPSHOT, address + "//out.root")
        text, errors = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, errors
        assert [float(word) for word in text.split()] == [10000, sum(range(10000))] * 2, errors
        assert "Error" not in errors
    with uproot.open(output) as file:
        for tree in ("folder/one", "two"):
            assert sorted(file[tree]["x"].array(library="np")) == list(range(10000))


SNAPSHOT_OF_AN_NTUPLE = """
if "mt" in sys.argv[2:]:
    ROOT.EnableImplicitMT(2)
options = ROOT.RDF.RSnapshotOptions()
options.fOutputFormat = ROOT.RDF.ESnapshotOutputFormat.kRNTuple
options.fLazy = "lazy" in sys.argv[2:]
ROOT.gInterpreter.Declare("double compute() { std::puts(\\"computed\\"); return 1.5; }")
try:
    saved = ROOT.RDataFrame(3).Define("x", "compute()").Snapshot("events", sys.argv[1], ["x"], options)
    print(saved.Count().GetValue())
except Exception as problem:
    print("refused")
file = ROOT.TFile.Open(sys.argv[1], "RECREATE")
ROOT.TNamed("note", "").Write()
file.Close()
"""


@pytest.mark.parametrize("words", [[], ["mt"], ["lazy"]])
def test_a_data_frame_is_not_saved_as_an_ntuple_and_that_is_said_before_it_computes(tmp_path, words):
    with merging(tmp_path, "--workers", "1") as (address, output, _):
        process = start_python(tmp_path, SNAPSHOT_OF_AN_NTUPLE, address + "//out.root", *words)
        text, errors = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, text) == (0, "refused\n"), errors
        assert "Snapshot cannot write an RNTuple here" in errors
    with uproot.open(output) as file:
        assert file.keys(cycle=False) == ["note"]


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


def test_what_a_process_has_written_it_can_read(tmp_path):
    with merging(tmp_path, "--workers", "2", directory=True) as (address, output, _):
        process = start_python(tmp_path, READ_BACK, address + "//elsewhere/name.root")
        text, errors = process.communicate(timeout=TIMEOUT)
        assert text.splitlines() == ["refused", "TFile 1", "TFile 2"], errors
        assert errors.count("can only be written") == 1
    assert uproot.open(output / "name.root")["t"].num_entries == 2


def test_what_is_in_several_shards_cannot_be_read_in_part(tmp_path):
    with merging(tmp_path, "--workers", "2", "--shards", "2") as (address, output, _):
        process = start_python(tmp_path, READ_BACK, address + "//out.root")
        text, errors = process.communicate(timeout=TIMEOUT)
        assert text.splitlines() == ["refused"] * 3, errors
    assert uproot.open(output)["t"].num_entries == 2


# What it does a million times is done less often.
CLIENT = (TUTORIALS / "legacy/net/parallelMergeClient.C").read_text().replace("000000", "000")
CLIENT = CLIENT.replace('std::string("mergedClient.root?pmerge=") + socketPath', "socketPath")


def test_the_client_of_roots_tutorial_works_unchanged(tmp_path):
    (tmp_path / "client.C").write_text(CLIENT)
    script = 'ROOT.gROOT.LoadMacro("client.C")\nROOT.parallelMergeClient(sys.argv[1])'
    with merging(tmp_path, "--workers", "2") as (address, output, _):
        # One has the number 0 and makes hpx, the other 1 and hpxpy.
        clients = [start_python(tmp_path, script, address + "//mergedClient.root") for _ in range(2)]
        for client in clients:
            _, errors = client.communicate(timeout=TIMEOUT)
            assert client.returncode == 0, errors
            assert "Error" not in errors and "*** Break ***" not in errors, errors
    with uproot.open(output) as file:
        assert file["tree"].num_entries == 50000
        assert file["hpx"].values(flow=True).sum() == 25000
        assert file["hpxpy"].values(flow=True).sum() == 25000


CAST = r"""
ROOT.gInterpreter.Declare('''
#include <TFile.h>
#include <TParallelMergingFile.h>
#include <TTree.h>
void fill(const char* url) {
  auto* file = (TParallelMergingFile*)TFile::Open(url, "RECREATE");
  file->UploadAndReset();
  int x = 0;
  auto* tree = new TTree("t", "t");
  tree->Branch("x", &x);
  for (int part = 0; part < 3; ++part) {
    for (int i = 0; i < 100; ++i, ++x) tree->Fill();
    tree->Write();
    if (!file->UploadAndReset() || tree->GetEntries() != 0) std::exit(2);
  }
  file->Close();
  delete file;
}
''')
ROOT.fill(sys.argv[1])
"""


def test_a_cast_to_the_stock_class_may_upload(tmp_path):
    with merging(tmp_path) as (address, output, _):
        process = start_python(tmp_path, CAST, address + "//out.root")
        _, errors = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, errors
    assert np.array_equal(uproot.open(output)["t"]["x"].array(library="np"), np.arange(300))


@pytest.mark.parametrize("url", ["wherry://0:7//x.root?pmerge", "wherry://0:7//x.root?reconnect=1&pmerge=localhost:9",
                                 "x.root?pmerge=wherry://0:7"])
def test_a_url_for_both_servers_is_refused(tmp_path, url):
    process = start("touch", tmp_path / "started", url)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 125 and f"{url}: pmerge is for ROOT's own server" in errors
    assert not (tmp_path / "started").exists()
