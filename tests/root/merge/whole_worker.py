# SPDX-License-Identifier: Apache-2.0
"""whole_worker.py PATH SEED ROUNDS [wait] [large]: writes what is attached to its file, and what is not, again in each round.

PATH is a URL, or a local file, of which the newest cycles are what hadd adds up. wait: before the last round "waiting" is
said, and a line waited for. large: each round has 8 MB more.
"""

import os
import sys
import warnings

warnings.filterwarnings("ignore")
import ROOT  # noqa: E402

ROOT.gInterpreter.Declare(r"""
#include <TEfficiency.h>
#include <TFile.h>
#include <TH1D.h>
#include <THnSparse.h>
#include <TParameter.h>
#include <TProfile.h>
#include <TRandom3.h>
#include <TTree.h>
#include <array>
#include <cstdio>

namespace whole {
int work(const char* path, int seed, int rounds, bool wait, int large) {
  std::unique_ptr<TFile> file(TFile::Open(path, "RECREATE"));
  if (!file || file->IsZombie()) return 1;
  if (std::string(path).rfind("wherry:", 0) == 0 && std::string(file->ClassName()) != "TScifFile") return 2;
  TH1::AddDirectory(true);
  auto* inner = file->mkdir("inner", "a directory");
  file->cd();
  auto* attached = new TH1D("attached", "", 10, 0, 10);
  auto* efficiency = new TEfficiency("efficiency", "attached, and has no Reset", 10, 0, 10);
  auto* tree = new TTree("tree", "attached");
  int number = 0;
  tree->Branch("seed", &seed);
  tree->Branch("number", &number);
  auto* ballast = new TTree("ballast", "attached");
  std::array<double, 1000> noise;
  TRandom3(1).RndmArray(1000, noise.data());
  ballast->Branch("noise", noise.data(), "noise[1000]/D");
  TH1D loose("loose", "", 10, 0, 10);
  loose.SetDirectory(nullptr);
  TProfile profile("profile", "", 10, 0, 10);
  profile.SetDirectory(nullptr);
  TTree memory("memory", "not attached");
  memory.SetDirectory(nullptr);
  memory.Branch("seed", &seed);
  memory.Branch("number", &number);
  const Int_t bins[] = {4, 4};
  const Double_t low[] = {0, 0}, high[] = {4, 4};
  auto* late = new TH1D("late", "attached from the second round on", 10, 0, 10);
  late->SetDirectory(nullptr);
  auto* later = new TTree("later", "attached from the second round on");
  later->SetDirectory(nullptr);
  later->Branch("seed", &seed);
  later->Branch("number", &number);
  THnSparseD sparse("sparse", "", 2, bins, low, high);
  TParameter<Long64_t> entries("entries", 0, '+');
  for (int round = 0; round < rounds; ++round) {
    if (round == 1) {
      late->SetDirectory(file.get());
      later->SetDirectory(file.get());
    }
    for (int i = 0; i < 100; ++i, ++number) {
      attached->Fill(i % 10);
      efficiency->Fill(i % 3 == 0, i % 10);
      loose.Fill(i % 7);
      profile.Fill(i % 5, seed);
      late->Fill(i % 3);
      later->Fill();
      const Double_t at[] = {double(i % 4), double(i / 4 % 4)};
      sparse.Fill(at);
      entries.SetVal(entries.GetVal() + 1);
      tree->Fill();
      memory.Fill();
    }
    if (wait && round == rounds - 1) {
      std::puts("waiting");
      std::fflush(stdout);
      std::getchar();
    }
    file->cd();
    loose.Write();
    loose.Write("under another name");
    file->WriteObject(&sparse, "sparse");
    entries.Write();
    memory.Write();
    if (round == 0) {
      late->Write();
      later->Write();
    }
    inner->cd();
    profile.Write();
    // More than a small server takes at once: what was written just now is handed over with the first part.
    attached->Write();
    for (int i = 0; i < large; ++i) ballast->Fill();
    if (file->Write() < 0) return 3;
  }
  // What is written after the last Write() is handed over by Close().
  file->cd();
  loose.Fill(9);
  loose.Write();
  file->Close();
  return file->TestBit(TFile::kWriteError) ? 4 : 0;
}
}  // namespace whole
""")
if __name__ == "__main__":
    assert ROOT.gSystem.Load(os.environ["WHERRY_ROOT_LIBRARY"]) >= 0
    sys.exit(ROOT.whole.work(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), "wait" in sys.argv[4:], 1000 if "large" in sys.argv[4:] else 0))
