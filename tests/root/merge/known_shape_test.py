# SPDX-License-Identifier: Apache-2.0
"""TScifMerger: files like one before are not read by ROOT, and what is merged is the same."""

import awkward
import numpy as np
import pytest
import rich_files
import ROOT
import uproot
from merge_test import Merging, merge_in_batches

ROOT.gInterpreter.Declare(r"""
namespace shapes {
// `change` is what of the first tree is not as in the others.
void write(const char* path, int seed, int entries, int compression, const std::string& change) {
  TRandom3 random(seed + 1);
  TFile file(path, "RECREATE", "", compression);
  auto* types = new TTree("types", "of many kinds");
  types->SetAutoFlush(150);
  rich::fill_types(*types, random, entries);
  if (change == "alias") types->SetAlias("twice", "2*i");
  if (change == "weight") types->SetWeight(2);
  if (change == "title") types->SetTitle("Of many kinds");
  auto* pairs = new TTree("pairs", "two numbers");
  Double_t a = seed, b = 0;
  pairs->Branch("a", &a, "a/D");
  pairs->Branch(change == "branch" ? "c" : "b", &b, change == "branch" ? "c/D" : "b/D");
  for (b = 0; b < 10 * entries; ++b) pairs->Fill();
  if (change == "histogram") { TH1D histogram("histogram", "", 10, 0, 1); histogram.Fill(.5); histogram.Write(); }
  file.Write();
}
}  // namespace shapes
""")


def make(path, seed, entries=200, compression=101, change=""):
    ROOT.shapes.write(str(path), seed, entries, compression, change)
    return path, np.fromfile(path, dtype=np.uint8)


def check(output, paths):
    """Every entry, in the order of the files."""
    sources = [uproot.open(path) for path in paths]
    with uproot.open(output) as file:
        for name in ["types", "pairs"]:
            found = rich_files.tree_arrays(file, name)
            wanted = [rich_files.tree_arrays(source, name) for source in sources]
            assert found.keys() == wanted[0].keys()
            for branch, values in found.items():
                assert rich_files.equal(values, awkward.concatenate([part[branch] for part in wanted])), (name, branch)


# A batch is read before any of it is appended: what is learned from the first serves the second. Several threads come first:
# they are then the first that use ROOT's classes in this process, and without ROOT's thread safety they crash it.
@pytest.mark.parametrize("batch", [4, 1])
@pytest.mark.parametrize("compression", [0, 101, 404, 505])
@pytest.mark.parametrize("threads", [3, 1])
def test_files_of_one_writer_are_merged_value_for_value_though_root_reads_one_only(
    tmp_path, batch, compression, threads
):
    parts = [make(tmp_path / f"{seed}.root", seed, 200 + seed, compression) for seed in range(12)]
    merging = merge_in_batches(tmp_path / "out.root", parts, batch, threads=threads)
    assert set(merging.outcome.values()) == {""}
    check(tmp_path / "out.root", [path for path, _ in parts])
    assert merging.merger.GetCounts().known >= 12 - 2 * batch


def test_the_output_is_the_same_for_root_whether_files_were_known_or_not(tmp_path):
    parts = [make(tmp_path / f"{seed}.root", seed, 200 + seed) for seed in range(8)]
    known = merge_in_batches(tmp_path / "known.root", parts, 1)
    read = merge_in_batches(tmp_path / "read.root", parts, 8)
    assert known.merger.GetCounts().known > 0 and read.merger.GetCounts().known == 0
    trees = []
    for name in ["known", "read"]:
        file = ROOT.TFile.Open(str(tmp_path / f"{name}.root"))
        types = file.Get("types")
        clusters, at = [], types.GetClusterIterator(0)
        while (start := at.Next()) < types.GetEntries():
            clusters.append(start)
        branches = [types.GetBranch(name) for name in ["n", "x", "text", "nested"]]
        trees.append(
            [types.GetEntries(), types.GetTotBytes(), types.GetZipBytes(), clusters, types.GetMaximum("n")]
            + [(branch.GetEntries(), branch.GetTotBytes(), branch.GetZipBytes()) for branch in branches]
            + [branch.GetListOfLeaves().At(0).GetMaximum() for branch in branches]
        )
    assert trees[0] == trees[1]


@pytest.mark.parametrize("change", ["alias", "weight", "title", "histogram", "header"])
def test_a_file_that_differs_in_more_than_numbers_is_read(tmp_path, change):
    parts = [make(tmp_path / f"{seed}.root", seed) for seed in range(5)]
    parts.insert(4, make(tmp_path / "other.root", 7, change=change))
    if change == "header":
        parts[4][1][33:37] = np.frombuffer((404).to_bytes(4, "big"), dtype=np.uint8)  # the file's compression
    merging = Merging(tmp_path / "out.root")
    known = []
    for i, (_, image) in enumerate(parts):
        merging.add("worker", i + 1, image)
        merging.merge()
        known.append(merging.merger.GetCounts().known)
    merging.close()
    assert known[4] == known[3] > 0, "the one that differs was not read"
    assert known[5] == known[4] + 1
    assert set(merging.outcome.values()) == {""}
    check(tmp_path / "out.root", [path for path, _ in parts])


def test_a_branch_of_another_name_is_refused_among_known_files(tmp_path):
    parts = [make(tmp_path / f"{seed}.root", seed) for seed in range(5)]
    merging = Merging(tmp_path / "out.root")
    for i, (_, image) in enumerate([*parts[:4], make(tmp_path / "x.root", 9, change="branch"), parts[4]]):
        merging.add(f"worker {i}", 1, image)
        merging.merge()
    merging.close()
    assert "pairs" in merging.outcome.pop(("worker 4", 1))
    assert set(merging.outcome.values()) == {""}
    check(tmp_path / "out.root", [path for path, _ in parts])


def with_a_basket_elsewhere(path, image, tree, branch, place):
    """The same, but for where the header of the tree says that a basket is."""
    file = ROOT.TFile.Open(str(path))
    seek = file.Get(tree).GetBranch(branch).GetBasketSeek(0)
    key = file.GetKey(tree)
    begin, end = key.GetSeekKey(), key.GetSeekKey() + key.GetNbytes()
    file.Close()
    at = begin + image[begin:end].tobytes().index(seek.to_bytes(8, "big"))
    changed = image.copy()
    changed[at : at + 8] = np.frombuffer(place.to_bytes(8, "big"), dtype=np.uint8)
    return changed


@pytest.mark.parametrize("place", [1, 300, 1 << 40, (1 << 64) - 200])
def test_a_known_file_whose_basket_is_not_where_it_says_is_refused(tmp_path, place):
    parts = [make(tmp_path / f"{seed}.root", seed, compression=0) for seed in range(5)]
    hostile = with_a_basket_elsewhere(*make(tmp_path / "x.root", 9, compression=0), "pairs", "a", place)
    merging = Merging(tmp_path / "out.root")
    for i, image in enumerate([*(image for _, image in parts[:4]), hostile, parts[4][1]]):
        merging.add(f"worker {i}", 1, image)
        merging.merge()
    counts = merging.merger.GetCounts()
    assert counts.known == 4 and counts.refused == 1
    merging.close()
    assert "basket 0 is not where it should be" in merging.outcome.pop(("worker 4", 1))
    assert set(merging.outcome.values()) == {""}
    check(tmp_path / "out.root", [path for path, _ in parts])


def test_more_shapes_than_are_remembered_are_merged_all_the_same(tmp_path):
    entries = [20, 200, 400, 600, 800, 1000, 1200, 1400, 1600, 1800, 2000]
    parts = [make(tmp_path / f"{i}-{n}.root", i, n) for i in range(4) for n in entries]
    merging = merge_in_batches(tmp_path / "out.root", parts, 5)
    assert set(merging.outcome.values()) == {""}
    check(tmp_path / "out.root", [path for path, _ in parts])
