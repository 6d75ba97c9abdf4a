# SPDX-License-Identifier: Apache-2.0
"""Names that an output uses itself, and objects that only look like trees."""

import numpy as np
import pytest
import ROOT
import uproot
from merge_test import Merging
from processes import Server, post

ROOT.gInterpreter.Declare(r"""
#include <TChain.h>
namespace names {
void directory(const char* path, const char* outer, const char* name) {
  TFile file(path, "RECREATE");
  TDirectory* place = *outer ? file.mkdir(outer) : &file;
  place->mkdir(name)->cd();
  TH1D("mine", "", 10, 0, 10).Write();
  file.cd();
  TH1D("other", "", 10, 0, 10).Write();
}
void object(const char* path, const char* name) {
  TFile file(path, "RECREATE");
  TH1D(name, "", 10, 0, 10).Write();
  TNamed("other", "").Write();
}
void chain(const char* path, int seed) {
  TFile file(path, "RECREATE");
  TChain chain("tree", "of no file that is there");
  chain.Add(("/nowhere/" + std::to_string(seed) + ".root").c_str());
  chain.Write("chain");
  TH1D histogram("histogram", "", 10, 0, 10);
  histogram.Fill(seed);
  histogram.Write();
}
int files_of(const char* path, const char* name) {
  TFile file(path);
  auto* chain = file.Get<TChain>(name);
  return chain == nullptr ? -1 : chain->GetListOfFiles()->GetEntries();
}
}  // namespace names
""")


def make(path, kind, *words):
    getattr(ROOT.names, kind)(str(path), *words)
    return np.fromfile(path, dtype=np.uint8)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("kind, words, name", [
    ("directory", ("", ".wherry"), "/.wherry"),
    ("object", (".wherry",), "/.wherry"),
    ("object", ("wherry:whole",), "/wherry:whole"),
])
def test_a_file_with_a_name_that_outputs_use_is_refused_and_the_rest_merged(tmp_path, kind, words, name, first):
    merging = Merging(tmp_path / "out.root")
    bad = make(tmp_path / "bad.root", kind, *words)
    if first:
        merging.add("bad", 1, bad)
    merging.add("good", 1, make(tmp_path / "good.root", "directory", "", "mine"))
    if not first:
        merging.add("bad", 1, bad)
    merging.close()
    assert merging.outcome["good", 1] == ""
    assert f"{name}: outputs use this name" in merging.outcome["bad", 1]
    with uproot.open(tmp_path / "out.root") as file:
        assert sorted(file.keys(cycle=False)) == ["mine", "mine/mine", "other"]


@pytest.mark.parametrize("outer, name", [("inner", ".wherry"), ("", "wherry"), ("", ".wherry.")])
@pytest.mark.parametrize("compact", [False, True])
def test_names_that_only_look_like_those_are_kept(tmp_path, outer, name, compact):
    image = make(tmp_path / "in.root", "directory", outer, name)
    merging = Merging(tmp_path / "out.root", compact=compact)
    for number in range(3):
        merging.add("worker", number + 1, image)
        merging.merge()
    merging.close()
    assert set(merging.outcome.values()) == {""}
    with uproot.open(tmp_path / "in.root") as source, uproot.open(tmp_path / "out.root") as output:
        assert sorted(output.keys(cycle=False)) == sorted(source.keys(cycle=False))


def test_the_program_says_why_such_a_name_is_refused(tmp_path):
    make(tmp_path / "bad.root", "directory", "", ".wherry")
    server = Server(tmp_path / "out.root", "--workers", 1)
    status, done, error = post(server, tmp_path / "bad.root")
    assert (status, done) == (1, 0) and "/.wherry: outputs use this name" in error
    assert server.end()[0] == 3


@pytest.mark.parametrize("restart", [False, True])
def test_a_chain_is_kept_and_the_rest_merged(tmp_path, restart):
    merging = Merging(tmp_path / "out.root")
    for i, seed in enumerate([1, 2, 1]):
        merging.add("worker", i + 1, make(tmp_path / f"{i}.root", "chain", seed))
        if restart:
            merging.merge()
            del merging.merger
            merging = Merging(tmp_path / "out.root")
    merging.close()
    with uproot.open(tmp_path / "out.root") as file:
        assert float(file["histogram"].values().sum()) == 3
    # Equal ones once.
    file = ROOT.TFile.Open(str(tmp_path / "out.root"))
    assert sorted((key.GetName(), key.GetCycle()) for key in file.GetListOfKeys()) == [("chain", 1), ("chain", 2), ("histogram", 1)]
    assert ROOT.names.files_of(str(tmp_path / "out.root"), "chain;1") == 1


def test_a_chain_does_not_kill_the_merging_process(tmp_path):
    server = Server(tmp_path / "out.root", "--workers", 2)
    for seed in [1, 2]:
        make(tmp_path / f"{seed}.root", "chain", seed)
        assert post(server, tmp_path / f"{seed}.root") == (0, 1, "")
    status, summary = server.end()
    assert (status, summary["restarts"]) == (0, 0), server.messages
