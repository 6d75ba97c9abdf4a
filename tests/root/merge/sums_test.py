# SPDX-License-Identifier: Apache-2.0
"""Histograms that cannot be added up: they are named, the rest is merged, and the job is not whole."""

import os

import numpy as np
import pytest
import ROOT
import uproot
from merge_test import Merging
from processes import Server, post

ROOT.gInterpreter.Declare(r"""
namespace sums {
// One that can always be added up, and two, one of them in a directory, that fit to those of another `last` only.
void write(const char* path, double last) {
  TFile file(path, "RECREATE");
  TTree tree("tree", "");
  tree.Branch("last", &last);
  tree.Fill();
  tree.Write();
  TH1D good("good", "", 10, 0, 10), range("range", "", 10, 0, last);
  TH2D plane("plane", "", 5, 0, last, 5, 0, last);
  for (TH1* histogram : {static_cast<TH1*>(&good), static_cast<TH1*>(&range), static_cast<TH1*>(&plane)}) {
    histogram->SetDirectory(nullptr);
  }
  good.Fill(3);
  range.Fill(3);
  plane.Fill(1, 1);
  good.Write();
  range.Write();
  file.mkdir("inner")->cd();
  plane.Write();
}
}  // namespace sums
""")


def write(path, last):
    ROOT.sums.write(str(path), last)
    return path, np.fromfile(path, dtype=np.uint8)


def sum_of(file, name):
    return float(file[name].values().sum())


def check(output, files, fitting):
    with uproot.open(output) as file:
        assert sum_of(file, "good") == files and file["tree"].num_entries == files
        assert sum_of(file, "range") == sum_of(file, "inner/plane") == fitting
        assert file["range"].axis().high == 10


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_histograms_of_other_axes_are_named_and_keep_no_other_out(tmp_path, batch):
    merging = Merging(tmp_path / "out.root")
    for i, last in enumerate([10, 10, 13, 10, 17]):
        merging.add("worker", i + 1, write(tmp_path / f"{i}.root", last)[1])
        if merging.merger.Pending() == batch:
            merging.merge()
    merging.close()
    assert list(merging.merger.NotAdded()) == ["/inner/plane", "/range"]
    check(tmp_path / "out.root", 5, 3)


def test_where_all_can_be_added_up_none_is_named(tmp_path):
    merging = Merging(tmp_path / "out.root")
    for i in range(3):
        merging.add("worker", i + 1, write(tmp_path / f"{i}.root", 10)[1])
    merging.close()
    assert list(merging.merger.NotAdded()) == []
    check(tmp_path / "out.root", 3, 3)


@pytest.mark.parametrize("directory", [False, True])
def test_the_program_names_them_and_its_status_says_that_the_output_is_not_whole(tmp_path, directory):
    place = tmp_path / "out"
    if directory:
        place.mkdir()
    server = Server(place, "--workers", 3)
    for i, last in enumerate([10, 13, 10]):
        assert post(server, write(tmp_path / f"{i}.root", last)[0]) == (0, 1, "")
    status, summary = server.end()
    output = place / "out.root" if directory else place
    assert (status, summary["whole"]) == (3, False)
    assert sorted(summary["not_added"]) == [f"{output}:/inner/plane", f"{output}:/range"]
    said = [line for line in server.messages if "is not whole" in line]
    assert any(f"{output}:/range could not be added up" in line for line in said), server.messages
    check(output, 3, 2)
    assert not [name for name in os.listdir(output.parent) if "journal" in name]
