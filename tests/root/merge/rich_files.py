# SPDX-License-Identifier: Apache-2.0
"""ROOT files with much in them, and what the merge of several must have, read by uproot."""

import math

import numpy as np
import ROOT
import uproot

ROOT.gROOT.SetBatch(True)
ROOT.TH1.AddDirectory(False)

ROOT.gInterpreter.Declare(r"""
#include <TFile.h>
#include <TH2.h>
#include <TNtuple.h>
#include <TParameter.h>
#include <TProfile.h>
#include <TRandom3.h>
#include <TTree.h>
#include <TVector3.h>
#include <ROOT/RNTupleModel.hxx>
#include <ROOT/RNTupleWriter.hxx>

namespace rich {

void fill_types(TTree& tree, TRandom3& random, int entries) {
  Bool_t flag; Char_t c; Short_t s; Int_t i; UInt_t u; Long64_t l; ULong64_t ul; Float_t f; Double_t d;
  Int_t n; Float_t x[20]; Double_t fixed[3][2]; char text[32];
  std::string word; std::vector<float> floats; std::vector<std::vector<float>> nested; std::vector<std::string> words;
  TVector3 vector;
  tree.Branch("flag", &flag, "flag/O"); tree.Branch("c", &c, "c/B"); tree.Branch("s", &s, "s/S");
  tree.Branch("i", &i, "i/I"); tree.Branch("u", &u, "u/i"); tree.Branch("l", &l, "l/L"); tree.Branch("ul", &ul, "ul/l");
  tree.Branch("f", &f, "f/F"); tree.Branch("d", &d, "d/D"); tree.Branch("n", &n, "n/I"); tree.Branch("x", x, "x[n]/F");
  tree.Branch("fixed", fixed, "fixed[3][2]/D"); tree.Branch("text", text, "text/C");
  tree.Branch("word", &word); tree.Branch("floats", &floats); tree.Branch("nested", &nested);
  tree.Branch("words", &words); tree.Branch("vector", &vector);
  for (int k = 0; k < entries; ++k) {
    flag = random.Integer(2); c = random.Integer(100); s = random.Integer(30000); i = random.Integer(1000000000);
    u = random.Integer(4000000000u); l = random.Integer(4000000000u) * 1000000LL; ul = l * 3ULL;
    f = random.Gaus(); d = random.Gaus(); n = random.Integer(20);
    for (int j = 0; j < n; ++j) x[j] = random.Rndm();
    for (auto& row : fixed) for (auto& value : row) value = random.Rndm();
    snprintf(text, sizeof text, "text %d", k);
    word = std::string(random.Integer(10), 'w');
    floats.assign(random.Integer(6), random.Rndm());
    nested.assign(random.Integer(4), std::vector<float>(random.Integer(3), k));
    words.assign(random.Integer(4), "word " + std::to_string(k));
    vector.SetXYZ(random.Rndm(), random.Rndm(), k);
    tree.Fill();
  }
}

void write(const char* path, int seed, int entries, int compression, bool ntuple) {
  TRandom3 random(seed + 1);
  TFile file(path, "RECREATE", "", compression);
  auto* types = new TTree("types", "of many kinds");
  types->SetAutoFlush(entries / 3 + 1);
  fill_types(*types, random, entries);
  auto* pairs = new TNtuple("pairs", "two numbers", "a:b");
  for (int k = 0; k < entries; ++k) pairs->Fill(seed, k);
  TH1D histogram("histogram", "adds up", 50, -5, 5);
  for (int k = 0; k < entries; ++k) histogram.Fill(random.Gaus());
  histogram.Write();
  TProfile profile("profile", "", 10, 0, 1);
  for (int k = 0; k < entries; ++k) profile.Fill(random.Rndm(), random.Gaus());
  profile.Write();
  TNamed("detector", "the same in all files").Write();
  TNamed("seed", std::to_string(seed).c_str()).Write();
  TParameter<Long64_t>("events", entries, '+').Write();
  auto* outer = file.mkdir("outer", "a directory");
  auto* inner = outer->mkdir("inner", "in a directory");
  outer->cd();
  TH2F("plane", "", 10, 0, 1, 10, 0, 1).Write();
  inner->cd();
  auto* hits = new TTree("hits", "deep");
  Int_t number; hits->Branch("number", &number, "number/I");
  for (number = seed * 1000; number < seed * 1000 + entries; ++number) hits->Fill();
  file.Write();
  if (ntuple) {
    auto model = ROOT::RNTupleModel::Create();
    auto energy = model->MakeField<float>("energy");
    auto channels = model->MakeField<std::vector<int>>("channels");
    auto writer = ROOT::RNTupleWriter::Append(std::move(model), "rntuple", file);
    for (int k = 0; k < entries; ++k) {
      *energy = random.Rndm();
      channels->assign(k % 5, seed);
      writer->Fill();
    }
  }
  file.Close();
}

}  // namespace rich
""")


def make(path, seed, entries=200, compression=101, ntuple=False):
    """Writes the file and returns its bytes."""
    ROOT.rich.write(str(path), seed, entries, compression, ntuple)
    return np.fromfile(path, dtype=np.uint8)


def equal(one, other):
    """Whether two values of uproot's are the same, lists of whatever kind included."""
    if hasattr(one, "tolist"):
        one = one.tolist()
    if hasattr(other, "tolist"):
        other = other.tolist()
    return one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


TREES = ["types", "pairs", "outer/inner/hits"]


def tree_arrays(file, name):
    tree = file[name]
    return {branch: tree[branch].array() for branch in tree.keys() if tree[branch].interpretation is not None}


def check(merged, parts, ntuple=False):
    """Every entry of every tree, in the order of the parts; every bin; every object."""
    import awkward

    with uproot.open(merged) as file:
        sources = [uproot.open(part) for part in parts]
        for name in TREES:
            found = tree_arrays(file, name)
            wanted = [tree_arrays(source, name) for source in sources]
            assert found.keys() == wanted[0].keys()
            for branch, values in found.items():
                assert equal(values, awkward.concatenate([part[branch] for part in wanted])), (name, branch)
        for name in ["histogram", "profile", "outer/plane"]:
            total = sum(source[name].values(flow=True) * 0 + source[name].to_numpy(flow=True)[0] for source in sources) \
                if name != "profile" else None
            if total is not None:
                assert np.allclose(file[name].to_numpy(flow=True)[0], total), name
        assert file["histogram"].member("fEntries") == sum(source["histogram"].member("fEntries") for source in sources)
        assert file["profile"].member("fEntries") == sum(source["profile"].member("fEntries") for source in sources)
        assert file["events"].member("fVal") == sum(source["events"].member("fVal") for source in sources)
        assert file["detector"].member("fTitle") == "the same in all files"
        assert [key for key in file.keys() if key.startswith("detector")] == ["detector;1"]
        seeds = {file[key].member("fTitle") for key in file.keys() if key.startswith("seed;")}
        assert seeds == {source["seed"].member("fTitle") for source in sources}
        if ntuple:
            found = file["rntuple"].arrays()
            wanted = awkward.concatenate([source["rntuple"].arrays() for source in sources])
            assert equal(found["energy"], wanted["energy"])
            assert equal(found["channels"], wanted["channels"])
