# SPDX-License-Identifier: Apache-2.0
"""TScifMerger beside hadd: what is in the output is the same, whatever is in the files."""

import os

import numpy as np
import pytest
import rich_files
import ROOT
from beside_hadd import contents, hadd
from merge_test import Merging
from processes import Server, post

ROOT.gInterpreter.Declare(r"""
#include <TEfficiency.h>
#include <TGraph.h>
#include <THnSparse.h>
#include <TMap.h>
#include <TObjString.h>
#include <TStopwatch.h>

namespace various {

void fill(TTree& tree, int seed, int entries) {
  int number = 0, event = 0;
  float values[3];
  tree.Branch("number", &number);
  tree.Branch("event", &event);
  tree.Branch("values", values, "values[3]/F");
  TRandom3 random(seed + 1);
  for (number = 0; number < entries; ++number) {
    event = (entries - number) * 100 + seed;
    for (float& value : values) value = random.Rndm();
    tree.Fill();
  }
}

// Keys that are not called as their objects are.
void names(const char* path, int seed) {
  TFile file(path, "RECREATE");
  TH1D histogram("histogram", "of one name", 10, 0, 10);
  histogram.SetDirectory(nullptr);
  histogram.Fill(seed);
  histogram.Write("zz before");
  histogram.Fill(5);
  histogram.Write("after");
  TTree tree("tree", "of another key");
  fill(tree, seed, 30);
  tree.Write("x");
  TTree other("tree", "of the same name");
  fill(other, seed, 20);
  other.Write("a");
  TList list;
  list.SetName("of a list");
  list.Add(new TObjString(("seed " + std::to_string(seed)).c_str()));
  list.Write("list", TObject::kSingleKey);
  TObjArray array;
  array.Add(new TNamed("in", "an array"));
  array.Add(new TNamed("seed", std::to_string(seed).c_str()));
  array.Write("array", TObject::kSingleKey);
  TNamed(("note of " + std::to_string(seed)).c_str(), "a title").Write("note");
  std::vector<int> numbers{seed, 2, 3};
  file.WriteObject(&numbers, "numbers");
  list.Delete();
  array.Delete();
}

// In no order of the alphabet, and in another order in each file.
void directories(const char* path, int seed) {
  TFile file(path, "RECREATE");
  auto* outer = file.mkdir("outer", "the outer one");
  file.mkdir("empty", "nothing is in it");
  auto* inner = outer->mkdir("inner", "in the outer one");
  inner->mkdir("deep", "nothing is in this one, too");
  if (seed % 2) file.mkdir("only in odd ones", "there");
  inner->cd();
  TNamed("z", std::to_string(seed).c_str()).Write();
  TH1D("y", "why", 5, 0, 5).Write();
  TH1D("a", "first", 5, 0, 5).Write();
  file.cd();
  for (const char* name : {"zeta", "beta", "omega", "alpha"}) TParameter<int>(name, seed, '+').Write();
  auto* tree = new TTree("a tree", "behind all");
  fill(*tree, seed, 10);
  tree->Write();
  TParameter<int>(("of " + std::to_string(seed)).c_str(), 1).Write();
  for (int cycle = 0; cycle < 3; ++cycle) TNamed("cycles", std::to_string(seed * 10 + cycle).c_str()).Write();
}

void trees(const char* path, int seed) {
  TFile file(path, "RECREATE");
  auto* saved = new TTree("saved", "several times");
  saved->SetAutoSave(12345);
  fill(*saved, seed, 50);
  saved->AutoSave();
  fill(*saved->CloneTree(0), seed, 1);
  saved->AutoSave();
  saved->Write();
  auto* dressed = new TTree("dressed", "with all that a tree can have");
  dressed->SetAutoFlush(7);
  dressed->SetWeight(2.5);
  fill(*dressed, seed, 40);
  dressed->SetAlias("twice", "2*number");
  dressed->GetUserInfo()->Add(new TNamed("run", "the same"));
  dressed->AddFriend("saved");
  dressed->Write();
  auto* indexed = new TTree("indexed", "by event");
  fill(*indexed, seed, 60);
  indexed->BuildIndex("event", "number");
  indexed->Write();
  auto* sometimes = new TTree("sometimes", "indexed in some files");
  fill(*sometimes, seed, 25);
  if (seed == 1) sometimes->BuildIndex("event");
  sometimes->Write();
}

void sums(const char* path, int seed) {
  TFile file(path, "RECREATE");
  TEfficiency efficiency("efficiency", "of something", 10, 0, 10);
  efficiency.SetDirectory(nullptr);
  for (int i = 0; i < 100; ++i) efficiency.Fill((i * seed) % 3 == 0, i % 10);
  efficiency.Write();
  const Int_t bins[] = {5, 5};
  const Double_t low[] = {0, 0}, high[] = {5, 5};
  THnSparseD sparse("sparse", "in two dimensions", 2, bins, low, high);
  for (int i = 0; i < 20; ++i) {
    const Double_t at[] = {double(i % 5), double((i * seed) % 5)};
    sparse.Fill(at);
  }
  sparse.Write();
  TParameter<double>("sum", seed, '+').Write();
  TParameter<double>("highest", seed, 'M').Write();
  const double x[] = {1. * seed, 2, 3}, y[] = {4, 5, 6};
  TGraph graph(3, x, y);
  graph.Write("graph");
  TProfile profile("profile", "", 10, 0, 1);
  profile.SetDirectory(nullptr);
  profile.Fill(.5, seed);
  profile.Write();
  TH2F plane("plane", "", 3, 0, 3, 3, 0, 3);
  plane.SetDirectory(nullptr);
  plane.Fill(seed % 3, 1);
  plane.Write();
}

}  // namespace various
""")


def make(path, kind, seed):
    getattr(ROOT.various, kind)(str(path), seed)
    return path, np.fromfile(path, dtype=np.uint8)


def make_all(folder, kind, count=4):
    return [make(folder / f"{seed}.root", kind, seed) for seed in range(count)]


@pytest.mark.parametrize("batch, restart", [(1, False), (3, True)])
@pytest.mark.parametrize("kind", ["names", "directories", "trees", "sums"])
def test_the_output_has_what_hadd_makes_of_the_same_files(tmp_path, kind, batch, restart):
    parts = make_all(tmp_path, kind)
    merging = Merging(tmp_path / "out.root")
    for i, (_, image) in enumerate(parts):
        merging.add("worker", i + 1, image)
        if merging.merger.Pending() == batch:
            merging.merge()
            if restart:
                del merging.merger
                merging = Merging(tmp_path / "out.root")
    merging.close()
    hadd(tmp_path / "hadd.root", *(path for path, _ in parts))
    assert contents(tmp_path / "out.root") == contents(tmp_path / "hadd.root")


# As hadd, but for 5 %.
def check_size(output, parts, folder):
    hadd(folder / "hadd.root", *(path for path, _ in parts))
    assert os.stat(output).st_size <= 1.05 * os.stat(folder / "hadd.root").st_size


ROOT.gInterpreter.Declare(r"""
namespace sizes {
// Each of a worker's files has a basket of each branch, and few entries.
void branches(const char* path, int seed, int) {
  TFile file(path, "RECREATE");
  auto* tree = new TTree("tree", "");
  std::vector<double> values(60);
  for (std::size_t i = 0; i < values.size(); ++i) tree->Branch(("b" + std::to_string(i)).c_str(), &values[i]);
  TRandom3 random(seed + 1);
  for (int i = 0; i < 20; ++i) {
    random.RndmArray(values.size(), values.data());
    tree->Fill();
  }
  file.Write();
}
void histograms(const char* path, int seed, int) {
  TFile file(path, "RECREATE");
  TRandom3 random(seed + 1);
  for (int i = 0; i < 5; ++i) {
    auto* histogram = new TH1D(("h" + std::to_string(i)).c_str(), "", 5000, 0, 1);
    for (int k = 0; k < 20000; ++k) histogram->Fill(random.Rndm());
    histogram->Write();
    delete histogram;
  }
  file.Write();
}
void mixed(const char* path, int seed, int) {
  rich::write(path, seed, 300, 505, true);
}
}  // namespace sizes
""")


def sized(folder, kind, count=20):
    paths = [folder / f"{seed}.root" for seed in range(count)]
    for seed, path in enumerate(paths):
        getattr(ROOT.sizes, kind)(str(path), seed, 0)
    return [(path, np.fromfile(path, dtype=np.uint8)) for path in paths]


@pytest.mark.parametrize(
    "kind, restart", [("branches", False), ("histograms", False), ("histograms", True), ("mixed", False)]
)
def test_the_output_is_as_small_as_what_hadd_makes(tmp_path, kind, restart):
    parts = sized(tmp_path, kind)
    merging = Merging(tmp_path / "out.root")
    for i, (_, image) in enumerate(parts):
        merging.add("worker", i + 1, image)
        merging.merge()
    if restart:
        del merging.merger
        merging = Merging(tmp_path / "out.root")
    merging.close()
    check_size(tmp_path / "out.root", parts, tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*out.roo*")) == ["out.root"]


def test_where_it_cannot_be_written_anew_it_is_whole_all_the_same(tmp_path):
    parts = sized(tmp_path, "histograms", 5)
    merging = Merging(tmp_path / "out.root")
    for i, (_, image) in enumerate(parts):
        merging.add("worker", i + 1, image)
        merging.merge()
    (tmp_path / "out.roo~" / "in the way").mkdir(parents=True)  # as its copy would be called
    merging.close()
    assert "keeps its holes" in str(merging.merger.Warning())
    hadd(tmp_path / "hadd.root", *(path for path, _ in parts))
    assert contents(tmp_path / "out.root") == contents(tmp_path / "hadd.root")


@pytest.mark.parametrize("kind", ["branches", "histograms", "mixed"])
def test_with_compact_it_always_is(tmp_path, kind):
    parts = sized(tmp_path, kind, 12)
    merging = Merging(tmp_path / "out.root", compact=True)
    for i, (_, image) in enumerate(parts):
        merging.add("worker", i + 1, image)
        merging.merge()
        if i in (1, 4, 11):
            check_size(tmp_path / "out.root", parts[: i + 1], tmp_path)
    merging.close()
    if kind == "mixed":
        rich_files.check(tmp_path / "out.root", [path for path, _ in parts], ntuple=True)


def with_wrong_lengths(path):
    """Every object in the file says that it is a byte shorter than it is, which ROOT reports as an error."""
    ROOT.various.plain(str(path))
    image = np.fromfile(path, dtype=np.uint8)
    file = ROOT.TFile.Open(str(path))
    for key in file.GetListOfKeys():
        at = key.GetSeekKey() + key.GetKeylen()
        count = int.from_bytes(image[at : at + 4].tobytes(), "big") - 1
        image[at : at + 4] = np.frombuffer(count.to_bytes(4, "big"), dtype=np.uint8)
    file.Close()
    image.tofile(path)
    return path, image


def with_unknown_class(path):
    ROOT.various.plain(str(path))
    image = np.frombuffer(path.read_bytes().replace(b"\6TNamed\4note", b"\6TNobdy\4note"), dtype=np.uint8).copy()
    image.tofile(path)
    return path, image


ROOT.gInterpreter.Declare(r"""
namespace various {
void plain(const char* path) {
  TFile file(path, "RECREATE", "", 0);
  auto* tree = new TTree("tree", "");
  fill(*tree, 1, 10);
  tree->Write();
  TParameter<Long64_t>("events", 10, '+').Write();
  TNamed("note", "of something").Write();
}
}  // namespace various
""")


@pytest.mark.parametrize("odd, said", [(with_wrong_lengths, "read too many bytes"), (with_unknown_class, "TNobdy")])
def test_what_hadd_merges_is_merged_and_what_is_said_of_it_is_a_warning(tmp_path, odd, said):
    ROOT.various.plain(str(tmp_path / "good.root"))
    parts = [odd(tmp_path / "odd.root"), (tmp_path / "good.root", np.fromfile(tmp_path / "good.root", dtype=np.uint8))]
    merging = Merging(tmp_path / "out.root")
    warnings = []
    for i, (_, image) in enumerate(parts):
        merging.add(f"worker {i}", 1, image)
        merging.merge()
        warnings.append(str(merging.merger.Warning()))
    merging.close()
    assert set(merging.outcome.values()) == {""}
    assert said in warnings[0] and said not in warnings[1]
    assert said in hadd(tmp_path / "hadd.root", *(path for path, _ in parts), verbosity=1)
    # Of what is kept, hadd keeps equal ones, too.
    expected = [line for line in contents(tmp_path / "hadd.root") if not line.startswith("/note;2")]
    found = contents(tmp_path / "out.root")
    assert [line for line in found if line[0] == "/"] == [line for line in expected if line[0] == "/"]


def test_the_program_says_a_warning_once(tmp_path):
    path, _ = with_wrong_lengths(tmp_path / "odd.root")
    server = Server(tmp_path / "out.root", "--workers", 3)
    for _ in range(3):
        assert post(server, path) == (0, 1, "")
    assert server.end()[0] == 0
    said = [line for line in server.messages if "object of class TTree read too many bytes" in line]
    assert len(said) == 1 and "warning" in said[0], server.messages
