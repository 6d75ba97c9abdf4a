# SPDX-License-Identifier: Apache-2.0
"""Trees of one name whose branches differ, in name or in how they store values, are not mixed."""

import re

import numpy as np
import pytest
import ROOT
import uproot
from merge_test import Merging
from processes import Server, post

ROOT.gInterpreter.Declare(r"""
#include <ROOT/TIOFeatures.hxx>
#include <TFile.h>
#include <TLorentzVector.h>
#include <TTree.h>
#include <TVector3.h>

namespace layouts {

// Branches as leaf lists, or as a class's name behind a '*'; all of them lie in the same memory.
void write(const char* path, const std::vector<std::string>& branches, int entries) {
  TFile file(path, "RECREATE");
  auto* tree = new TTree("tree", "");
  long long memory[16] = {3, 3, 3, 3};
  std::vector<void*> objects(branches.size());
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const std::string name = branches[i].substr(0, branches[i].find_first_of("=*"));
    const std::string type = branches[i].substr(name.size() + 1);
    if (branches[i][name.size()] == '=') {
      tree->Branch(name.c_str(), memory, type.c_str());
    } else {
      objects[i] = TClass::GetClass(type.c_str())->New();
      tree->Branch(name.c_str(), type.c_str(), &objects[i]);
    }
  }
  for (int i = 0; i < entries; ++i) tree->Fill();
  file.Write();
}

// Arrays whose entry offsets are calculated from the branch of their lengths. In every file other lengths.
void calculated(const char* path, int seed, int entries) {
  TFile file(path, "RECREATE", "", seed % 2 ? 505 : 101);
  auto* tree = new TTree("tree", "");
  ROOT::TIOFeatures features;
  features.Set(ROOT::Experimental::EIOFeatures::kGenerateOffsetMap);
  tree->SetIOFeatures(features);
  tree->SetAutoFlush(37);
  int count, values[10];
  std::vector<std::string> words;
  tree->Branch("count", &count, "count/I");
  tree->Branch("values", values, "values[count]/I");
  tree->Branch("words", &words);
  for (int i = 0; i < entries; ++i) {
    count = (i + seed) % 10;
    for (int k = 0; k < count; ++k) values[k] = i * k + seed;
    words.assign(i % 3, "word " + std::to_string(i));
    tree->Fill();
  }
  file.Write();
}

void vectors(const char* path, int seed, int split_level) {
  TFile file(path, "RECREATE");
  auto* tree = new TTree("tree", "");
  auto* vector = new TVector3;
  tree->Branch("v", &vector, 32000, split_level);
  for (int i = 0; i < 50; ++i) {
    vector->SetXYZ(seed, i, i * i);
    tree->Fill();
  }
  file.Write();
}

void text(const char* path, int length) {
  TFile file(path, "RECREATE");
  auto* tree = new TTree("tree", "");
  char text[100] = {};
  tree->Branch("text", text, "text/C");
  for (int i = 0; i < length; ++i) {
    text[i] = 'a';
    tree->Fill();
  }
  file.Write();
}

// All values in one line each.
std::vector<std::string> lines(const char* path) {
  TFile file(path);
  auto* tree = file.Get<TTree>("tree");
  int count, values[10];
  std::vector<std::string>* words = nullptr;
  tree->SetBranchAddress("count", &count);
  tree->SetBranchAddress("values", values);
  tree->SetBranchAddress("words", &words);
  std::vector<std::string> lines;
  for (Long64_t i = 0; i < tree->GetEntries(); ++i) {
    if (tree->GetEntry(i) <= 0) return {"entry " + std::to_string(i) + " cannot be read"};
    std::string line = std::to_string(count);
    for (int k = 0; k < count; ++k) line += " " + std::to_string(values[k]);
    for (const std::string& word : *words) line += " " + word;
    lines.push_back(line);
  }
  return lines;
}

}  // namespace layouts
""")


def make(path, branches, entries=10):
    ROOT.layouts.write(str(path), ROOT.std.vector["std::string"](branches), entries)
    return np.fromfile(path, dtype=np.uint8)


def branches_of(path):
    file = ROOT.TFile.Open(str(path))
    tree = file.Get("tree")
    return sorted(branch.GetName() for branch in tree.GetListOfBranches()), tree.GetEntries()


# Two files' branches, and what the reason names.
DIFFERENT = {
    "no branches": ([], ["a=a/I"], "branch a is "),
    "one more": (["a=a/I"], ["a=a/I", "b=b/I"], "branch b is "),
    "several more": (["a=a/I"], ["a=a/I", "b=b/I", "c=c/I"], "branches b, c are "),
    "another name": (["a=a/I"], ["b=b/I"], "b is not in the output; branch a is in the output only|"
                                           "a is not in the output; branch b is in the output only"),
    "integer and float": (["i=i/I"], ["i=i/F"], "branch i is TLeaf[IF] i, in the output TLeaf[IF] i"),
    "signed and unsigned": (["i=i/I"], ["i=i/i"], "branch i is .*unsigned"),
    "lengths": (["i=i[2]/I"], ["i=i[4]/I"], r"branch i is TLeafI i\[[24]\], in the output TLeafI i\[[24]\]"),
    "ranges of doubles": (["d=d/d[0,10,16]"], ["d=d/d[0,100,12]"], r"branch d is TLeafD32 d/d\[0,"),
    "ranges of floats": (["f=f/f[0,10,16]"], ["f=f/f[0,10,12]"], r"branch f is TLeafF16 f/f\[0,10"),
    "a range and none": (["d=d/d[0,10,16]"], ["d=d/d"], "branch d is TLeafD32 d"),
    "order of leaves": (["p=x/I:y/I"], ["p=y/I:x/I"], "branch p is TLeafI [xy], TLeafI [xy], in the output"),
    "number of leaves": (["p=x/I:y/I"], ["p=x/I"], "branch p is TLeafI x"),
    "fixed and variable": (["n=n/I", "v=v[3]/I"], ["n=n/I", "v=v[n]/I"], r"branch v is TLeafI v\[[n3]\]"),
    "counters": (["n=n/I", "m=m/I", "v=v[m]/I"], ["n=n/I", "m=m/I", "v=v[n]/I"], r"branch v is TLeafI v\[[nm]\]"),
    "elements of vectors": (["v*vector<float>"], ["v*vector<int>"], "branch v is vector<(float|int)>"),
    "classes": (["o*TNamed"], ["o*TLorentzVector"], "branch o is T"),
}


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", DIFFERENT)
def test_a_tree_with_other_branches_is_refused_whichever_comes_first(tmp_path, kind, turned, restart):
    first, second, reason = DIFFERENT[kind]
    if turned:
        first, second = second, first
    merging = Merging(tmp_path / "out.root")
    image = make(tmp_path / "first.root", first)
    merging.add("first", 1, image)
    merging.merge()
    if restart:
        del merging.merger
        merging = Merging(tmp_path / "out.root")
    merging.add("second", 1, make(tmp_path / "second.root", second))
    merging.add("first", 2, image)
    merging.close()
    assert merging.outcome["first", 2] == ""
    assert re.search("tree tree: .*(" + reason + ")", merging.outcome["second", 1]), merging.outcome
    names, entries = branches_of(tmp_path / "out.root")
    assert names == sorted(branch[0] for branch in first) and entries == 20


@pytest.mark.parametrize("kind", DIFFERENT)
def test_outputs_that_will_be_joined_agree_on_branches(tmp_path, kind):
    first, second, _ = DIFFERENT[kind]
    shapes = ROOT.TScifMerger.MakeShapes()
    one, other = (Merging(tmp_path / name, shapes=shapes) for name in ["one.root", "other.root"])
    one.add("first", 1, make(tmp_path / "first.root", first))
    one.merge()
    other.add("second", 1, make(tmp_path / "second.root", second))
    other.merge()
    assert "tree tree: " in other.outcome["second", 1], other.outcome


# Spelling, and the name of a branch's only leaf, alter no byte.
@pytest.mark.parametrize("first, second", [
    (["d=d/d[0,10,16]"], ["d=d/d[0, 10, 16]"]),
    (["a=a/I"], ["a=b/I"]),
    (["a=a/I", "b=b/F"], ["b=b/F", "a=a/I"]),
])
def test_trees_that_store_their_values_alike_are_merged(tmp_path, first, second):
    merging = Merging(tmp_path / "out.root")
    for worker, branches in [("first", first), ("second", second)]:
        merging.add(worker, 1, make(tmp_path / f"{worker}.root", branches))
    merging.close()
    assert set(merging.outcome.values()) == {""}
    assert branches_of(tmp_path / "out.root")[1] == 20


@pytest.mark.parametrize("lengths", [(5, 50), (50, 5)])
def test_strings_are_merged_whatever_their_lengths(tmp_path, lengths):
    merging = Merging(tmp_path / "out.root")
    for i, length in enumerate(lengths):
        ROOT.layouts.text(str(tmp_path / f"{i}.root"), length)
        merging.add("worker", i + 1, np.fromfile(tmp_path / f"{i}.root", dtype=np.uint8))
    merging.close()
    assert set(merging.outcome.values()) == {""}
    with uproot.open(tmp_path / "out.root") as file:
        texts = file["tree"]["text"].array(library="np")
    assert [len(text) for text in texts] == [length for last in lengths for length in range(1, last + 1)]


@pytest.mark.parametrize("levels", [(0, 99), (99, 0), (1, 0), (0, 1)])
def test_objects_that_are_split_in_one_file_only_are_refused_whichever_comes_first(tmp_path, levels):
    merging = Merging(tmp_path / "out.root")
    for seed, level in enumerate(levels):
        ROOT.layouts.vectors(str(tmp_path / f"{seed}.root"), seed, level)
        merging.add(f"worker {seed}", 1, np.fromfile(tmp_path / f"{seed}.root", dtype=np.uint8))
    merging.close()
    assert merging.outcome["worker 0", 1] == "" and "branch v" in merging.outcome["worker 1", 1], merging.outcome


@pytest.mark.parametrize("restart, options", [(False, {}), (True, {}), (False, {"compact": True})])
def test_arrays_whose_offsets_are_calculated_can_be_read_again(tmp_path, restart, options):
    paths = [tmp_path / f"{seed}.root" for seed in range(6)]
    merging = Merging(tmp_path / "out.root", **options)
    for seed, path in enumerate(paths):
        ROOT.layouts.calculated(str(path), seed, 200 + 11 * seed)
        merging.add("worker", seed + 1, np.fromfile(path, dtype=np.uint8))
        if seed % 2:
            merging.merge()
            if restart:
                del merging.merger
                merging = Merging(tmp_path / "out.root", **options)
    merging.close()
    expected = [line for path in paths for line in ROOT.layouts.lines(str(path))]
    assert len(expected) == 1200 + 11 * 15
    found = list(ROOT.layouts.lines(str(tmp_path / "out.root")))
    assert [(i, pair) for i, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1]][:3] == []


def test_a_worker_with_other_branches_is_refused_by_the_program(tmp_path):
    make(tmp_path / "empty.root", [], 0)
    make(tmp_path / "full.root", ["a=a/I"])
    server = Server(tmp_path / "out.root", "--workers", 2)
    assert post(server, tmp_path / "empty.root")[:2] == (0, 1)
    status, done, error = post(server, tmp_path / "full.root")
    assert (status, done) == (1, 0) and "branch a is not in the output" in error
    status, summary = server.end()
    assert (status, summary["whole"], summary["refused"]) == (3, False, 1)
