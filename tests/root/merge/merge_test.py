# SPDX-License-Identifier: Apache-2.0
"""TScifMerger: every entry is compared through uproot."""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rich_files
import ROOT
import uproot

ROOT.gInterpreter.Declare(r"""
namespace odd {
void ntuple(const char* path, const char* name, int entries) {
  TFile file(path, "RECREATE");
  auto model = ROOT::RNTupleModel::Create();
  auto other = model->MakeField<double>("other");
  auto writer = ROOT::RNTupleWriter::Append(std::move(model), name, file);
  TRandom3 random(1);
  for (int i = 0; i < entries; ++i) {
    *other = random.Rndm();
    writer->Fill();
  }
}
void unchecked(const char* path, const char* name, int entries) {
  TFile file(path, "RECREATE");
  auto model = ROOT::RNTupleModel::Create();
  auto other = model->MakeField<double>("other");
  ROOT::RNTupleWriteOptions options;
  options.SetEnablePageChecksums(false);
  auto writer = ROOT::RNTupleWriter::Append(std::move(model), name, file, options);
  for (int i = 0; i < entries; ++i) {
    *other = i;
    writer->Fill();
  }
}
void histogram(const char* path, const char* directory, const char* name) {
  TFile file(path, "RECREATE");
  (*directory ? file.mkdir(directory) : &file)->cd();
  TH1D(name, "", 10, 0, 1).Write();
}
void note(const char* path, const char* name) {
  TFile file(path, "RECREATE");
  TNamed(name, "not to be added up").Write();
}
void numbers(const char* path, int entries) {
  TFile file(path, "RECREATE");
  auto* tree = new TTree("numbers", "");
  int number = 0;
  tree->Branch("number", &number);
  for (; number < entries; ++number) tree->Fill();
  file.Write();
}
// A liar's: basket 1 of the branch begins at `first`, or where it should if that is -1.
void lie(const char* path, const char* name, Long64_t first, Long64_t entries) {
  TFile file(path, "RECREATE");
  auto* tree = new TTree(name, "");
  int number = 0;
  tree->Branch("number", &number);
  for (; number < 300; ++number) {
    tree->Fill();
    if (number % 100 == 99) tree->FlushBaskets();
  }
  if (first != -1) tree->GetBranch("number")->GetBasketEntry()[1] = first;
  tree->SetEntries(entries);
  file.Write();
}
void large(const char* path, int seed, int entries) {
  TFile file(path, "RECREATE", "", 0);
  auto* tree = new TTree("large", "");
  std::array<double, 1000> values;
  tree->Branch("values", values.data(), "values[1000]/D");
  TRandom3 random(seed + 1);
  for (int i = 0; i < entries; ++i) {
    random.RndmArray(1000, values.data());
    tree->Fill();
  }
  file.Write();
}
}  // namespace odd
""")


def make_odd(path, kind, *words):
    getattr(ROOT.odd, kind)(str(path), *words)
    return np.fromfile(path, dtype=np.uint8)


class Merging:
    """A merger that remembers what became of each file; the callables must live as long as the merger."""

    def __init__(self, output, **options):
        settings = ROOT.TScifMerger.Options()
        for name, value in options.items():
            setattr(settings, name, value)
        self.merger = ROOT.TScifMerger(str(output), settings)
        self.outcome = {}
        self.kept = []

    def add(self, worker, sequence, image):
        def release(problem):
            assert (worker, sequence) not in self.outcome
            self.outcome[worker, sequence] = str(problem)

        self.kept += [image, release]
        self.merger.Add(worker, sequence, image, image.size, release)

    def merge(self):
        assert self.merger.Merge(), self.merger.Error()

    def close(self):
        assert self.merger.Close(), self.merger.Error()


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    paths = [folder / f"{seed}.root" for seed in range(7)]
    return [(path, rich_files.make(path, seed, ntuple=True)) for seed, path in enumerate(paths)]


def merge_in_batches(output, parts, batch, **options):
    merging = Merging(output, **options)
    for i, (_, image) in enumerate(parts):
        merging.add("worker", i + 1, image)
        if merging.merger.Pending() == batch:
            merging.merge()
    merging.close()
    return merging


@pytest.mark.parametrize("batch", [1, 3, 7])
def test_everything_in_the_files_is_in_the_output(tmp_path, parts, batch):
    merging = merge_in_batches(tmp_path / "out.root", parts, batch)
    assert set(merging.outcome.values()) == {""}
    rich_files.check(tmp_path / "out.root", [path for path, _ in parts], ntuple=True)
    assert os.listdir(tmp_path) == ["out.root"]


def test_threads_that_read_change_nothing(tmp_path, parts):
    merge_in_batches(tmp_path / "out.root", parts, 4, threads=4)
    rich_files.check(tmp_path / "out.root", [path for path, _ in parts], ntuple=True)


def test_the_output_is_readable_after_each_batch(tmp_path, parts):
    merging = Merging(tmp_path / "out.root")
    for i, (_, image) in enumerate(parts):
        merging.add("worker", i + 1, image)
        merging.merge()
        rich_files.check(tmp_path / "out.root", [path for path, _ in parts[: i + 1]], ntuple=True)


def test_root_reads_what_uproot_reads(tmp_path, parts):
    merge_in_batches(tmp_path / "out.root", parts, 2)
    file = ROOT.TFile.Open(str(tmp_path / "out.root"))
    assert not file.TestBit(ROOT.TFile.kRecovered)
    assert [key.GetCycle() for key in file.GetListOfKeys() if key.GetName() == "types"] == [1]
    tree = file.Get("types")
    assert sum(entry.i for entry in tree) == sum(
        int(uproot.open(path)["types"]["i"].array(library="np").sum()) for path, _ in parts
    )


def test_many_batches_leave_few_free_places_and_little_space(tmp_path):
    # What a commit replaces is larger than what the one before did, and fits no place that was left.
    image = make_odd(tmp_path / "one.root", "numbers", 50)
    merging = Merging(tmp_path / "out.root")
    for i in range(300):
        merging.add("worker", i + 1, image)
        merging.merge()
        # All of it is there, up to the end that its header names, or a successor would not go on with it.
        with open(tmp_path / "out.root", "rb") as file:
            assert os.fstat(file.fileno()).st_size >= int.from_bytes(file.read(16)[12:], "big")
    merging.close()
    with uproot.open(tmp_path / "out.root") as file:
        assert file["numbers"]["number"].array(library="np").tolist() == list(range(50)) * 300
    file = ROOT.TFile.Open(str(tmp_path / "out.root"), "UPDATE")
    assert file.GetListOfFree().GetSize() < 20
    assert os.stat(tmp_path / "out.root").st_size < 300 * image.size
    assert not file.TestBit(ROOT.TFile.kRecovered)


def clusters(path):
    file = ROOT.TFile.Open(str(path))
    tree = file.Get("types")
    iterator, starts = tree.GetClusterIterator(0), []
    while (start := iterator()) < tree.GetEntries():
        starts.append(start)
    return starts


def test_clusters_end_where_those_of_the_files_did(tmp_path):
    sizes = (200, 50, 90)
    paths = [tmp_path / f"{i}.root" for i in range(3)]
    images = [rich_files.make(path, i, entries) for i, (path, entries) in enumerate(zip(paths, sizes))]
    merge_in_batches(tmp_path / "out.root", list(zip(paths, images)), 2)
    expected = [sum(sizes[:i]) + start for i, path in enumerate(paths) for start in clusters(path)]
    assert clusters(tmp_path / "out.root") == expected


def test_higgs_data_of_the_wheel(tmp_path):
    source = Path(ROOT.__file__).parent / "tutorials/machine_learning/data/Higgs_data.root"
    image = np.fromfile(source, dtype=np.uint8)
    merge_in_batches(tmp_path / "out.root", [(source, image)] * 5, 2)
    with uproot.open(source) as one, uproot.open(tmp_path / "out.root") as merged:
        for name in ["sig_tree", "bkg_tree"]:
            expected = one[name].arrays(library="np")
            found = merged[name].arrays(library="np")
            assert len(found) == 29
            for branch, values in expected.items():
                assert np.array_equal(np.tile(values, 5), found[branch]), branch


@pytest.mark.parametrize("compression", [0, 404, 505])
def test_a_given_compression_is_applied(tmp_path, parts, compression):
    merge_in_batches(tmp_path / "out.root", parts, 3, compression=compression)
    rich_files.check(tmp_path / "out.root", [path for path, _ in parts])
    file = ROOT.TFile.Open(str(tmp_path / "out.root"))
    assert file.Get("types").GetBranch("d").GetCompressionSettings() == compression


def test_files_of_different_compression_are_merged_as_they_are(tmp_path):
    paths = [tmp_path / f"{compression}.root" for compression in (0, 101, 404, 505)]
    images = [rich_files.make(path, i, compression=int(path.stem)) for i, path in enumerate(paths)]
    merge_in_batches(tmp_path / "out.root", list(zip(paths, images)), 2)
    rich_files.check(tmp_path / "out.root", paths)


def test_a_file_that_is_there_already_is_not_merged_again(tmp_path, parts):
    merging = Merging(tmp_path / "out.root")
    merging.add("one", 5, parts[0][1])
    merging.merge()
    for worker, sequence, part in [("one", 5, 0), ("one", 4, 1), ("two", 5, 2), ("one", 6, 3)]:
        merging.outcome.pop((worker, sequence), None)
        merging.add(worker, sequence, parts[part][1])
    merging.close()
    assert set(merging.outcome.values()) == {""}
    assert merging.merger.GetCounts().duplicates == 2
    rich_files.check(tmp_path / "out.root", [parts[i][0] for i in (0, 2, 3)], ntuple=True)


def test_what_is_no_root_file_is_refused_and_the_rest_merged(tmp_path, parts):
    good = parts[0][1]
    damaged = good.copy()
    damaged[200:-200] = np.random.default_rng(1).integers(0, 256, size=damaged.size - 400, dtype=np.uint8)
    bad = [np.zeros(5000, dtype=np.uint8), good[: good.size // 2].copy(), good[:90].copy(), damaged]
    merging = Merging(tmp_path / "out.root")
    merging.add("first", 1, parts[1][1])
    for i, image in enumerate(bad):
        merging.add(f"bad {i}", 1, image)
    merging.add("last", 1, parts[2][1])
    merging.close()
    assert {worker for (worker, _), problem in merging.outcome.items() if problem} == {f"bad {i}" for i in range(4)}
    rich_files.check(tmp_path / "out.root", [parts[1][0], parts[2][0]], ntuple=True)


def test_a_tree_of_other_branches_is_refused(tmp_path, parts):
    ROOT.RDataFrame(10).Define("other", "1").Snapshot("types", str(tmp_path / "other.root"))
    merging = Merging(tmp_path / "out.root")
    merging.add("one", 1, parts[0][1])
    merging.add("two", 1, np.fromfile(tmp_path / "other.root", dtype=np.uint8))
    merging.add("one", 2, parts[1][1])
    merging.close()
    assert merging.outcome["one", 1] == merging.outcome["one", 2] == ""
    assert "types" in merging.outcome["two", 1]
    rich_files.check(tmp_path / "out.root", [parts[0][0], parts[1][0]], ntuple=True)


@pytest.mark.parametrize("learned", [False, True])
def test_a_tree_whose_baskets_have_entries_that_cannot_be_is_refused_and_the_rest_merged(tmp_path, learned):
    honest = [make_odd(tmp_path / f"{i}.root", "lie", "numbers", -1, 300) for i in range(6)]
    lies = [(1 << 60, 300), (301, 300), (-5, 300), (201, 300), (-1, 1 << 62), (-1, 250)]
    merging = Merging(tmp_path / "out.root")
    if learned:  # it is like what ROOT need not read
        merging.add("honest", 1, honest.pop())
        merging.merge()
    for i, lie in enumerate(lies):
        merging.add(f"liar {i}", 1, make_odd(tmp_path / f"lie{i}.root", "lie", "numbers", *lie))
        if i % 2 == 0:
            merging.add("honest", 2 + i, honest.pop())
        if i % 3 == 2:
            merging.merge()
    merging.close()
    refused = {worker for (worker, _), problem in merging.outcome.items() if problem}
    assert refused == {f"liar {i}" for i in range(len(lies))}, merging.outcome
    with uproot.open(tmp_path / "out.root") as file:
        numbers = file["numbers"]["number"].array(library="np")
    assert numbers.tolist() == list(range(300)) * (3 + learned)


def with_noise_in_a_page(image):
    """The numbers of the field `other`, which cannot be compressed to less than what is altered, have another checksum."""
    damaged = image.copy()
    # Behind the description of the fields.
    pages = bytes(image).index(b"RBlob", bytes(image).index(b"RBlob") + 8)
    damaged[pages + 1000 : pages + 1030] ^= 255
    return damaged


def test_an_rntuple_that_cannot_be_merged_is_refused_and_the_rest_merged(tmp_path, parts):
    bad = {
        "other fields": make_odd(tmp_path / "other.root", "ntuple", "rntuple", 500),
        "wrong checksum": with_noise_in_a_page(make_odd(tmp_path / "noise.root", "ntuple", "numbers", 5000)),
        "in a tree's place": make_odd(tmp_path / "types.root", "ntuple", "types", 500),
    }
    merging = Merging(tmp_path / "out.root")
    for i, (worker, image) in enumerate(bad.items()):
        merging.add("good", 2 * i + 1, parts[2 * i][1])
        merging.add(worker, 1, image)
        merging.add("good", 2 * i + 2, parts[2 * i + 1][1])
        if i != 1:
            merging.merge()
    merging.close()
    assert {worker for (worker, _), problem in merging.outcome.items() if problem} == set(bad), merging.outcome
    rich_files.check(tmp_path / "out.root", [path for path, _ in parts[:6]], ntuple=True)


@pytest.mark.parametrize("together", [1, 2, 10])
def test_an_rntuple_that_only_roots_merger_objects_to_is_refused_and_the_rest_merged(tmp_path, parts, together):
    """One whose pages have no checksums; ROOT does not say which of its inputs it is."""
    good = [make_odd(tmp_path / f"{i}.root", "ntuple", "numbers", 3000 + i) for i in range(3)]
    good += [image for _, image in parts[:4]]
    bad = make_odd(tmp_path / "bad.root", "unchecked", "numbers", 3000)
    merging = Merging(tmp_path / "out.root")
    for i, who in enumerate(["bad", "one", "two", "one", "worse", "two", "worst", "one", "two", "one"]):
        merging.add(who, i + 1, good.pop() if who in ("one", "two") else bad)
        if (i + 1) % together == 0:
            merging.merge()
    merging.close()
    refused = {worker: problem for (worker, _), problem in merging.outcome.items() if problem}
    assert set(refused) == {"bad", "worse", "worst"}, merging.outcome
    assert all("numbers" in problem and "Checksum" in problem for problem in refused.values())
    assert merging.merger.GetCounts().files == 7
    rich_files.check(tmp_path / "out.root", [path for path, _ in parts[3::-1]], ntuple=True)
    with uproot.open(tmp_path / "out.root") as file:
        assert file["numbers"].num_entries == sum(3000 + i for i in range(3))


def test_an_rntuple_of_another_shape_is_refused_by_a_successor(tmp_path, parts):
    first = Merging(tmp_path / "out.root")
    first.add("one", 1, parts[0][1])
    first.merge()
    del first.merger
    merging = Merging(tmp_path / "out.root")
    merging.add("two", 1, make_odd(tmp_path / "other.root", "ntuple", "rntuple", 500))
    merging.add("one", 2, parts[1][1])
    merging.close()
    assert "rntuple" in merging.outcome["two", 1] and merging.outcome["one", 2] == ""
    rich_files.check(tmp_path / "out.root", [path for path, _ in parts[:2]], ntuple=True)


def test_rntuples_of_different_compression_are_merged(tmp_path):
    paths = [tmp_path / f"{compression}.root" for compression in (505, 0, 404)]
    images = [rich_files.make(path, i, compression=int(path.stem), ntuple=True) for i, path in enumerate(paths)]
    merging = merge_in_batches(tmp_path / "out.root", list(zip(paths, images)), 2)
    assert set(merging.outcome.values()) == {""}
    rich_files.check(tmp_path / "out.root", paths, ntuple=True)


@pytest.mark.parametrize("restart", [False, True])
def test_a_name_is_one_kind_of_thing(tmp_path, parts, restart):
    odd = {
        "a histogram for a tree": ("histogram", "", "types"),
        "a tree for a directory": ("histogram", "types", "inside"),
        "a histogram for a directory": ("histogram", "", "outer"),
        "a directory for a histogram": ("histogram", "histogram", "inside"),
        "a histogram for an rntuple": ("histogram", "", "rntuple"),
        "a note for a tree": ("note", "pairs"),
        "a histogram for a note": ("histogram", "", "detector"),
    }
    merging = Merging(tmp_path / "out.root")
    merging.add("one", 1, parts[0][1])
    if restart:
        merging.merge()
        del merging.merger
        merging = Merging(tmp_path / "out.root")
    for i, (worker, words) in enumerate(odd.items()):
        merging.add(worker, 1, make_odd(tmp_path / f"{i}.root", *words))
    merging.add("one", 2, parts[1][1])
    merging.close()
    assert {worker for (worker, _), problem in merging.outcome.items() if problem} == set(odd), merging.outcome
    rich_files.check(tmp_path / "out.root", [parts[0][0], parts[1][0]], ntuple=True)


def test_pyroot_makes_options_without_a_word():
    load = "import os, ROOT; ROOT.gSystem.Load(os.environ['WHERRY_ROOT_MERGE']); ROOT.TScifMerger.Options()"
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", load], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
