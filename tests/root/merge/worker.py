# SPDX-License-Identifier: Apache-2.0
"""worker.py URL SEED FILES ENTRIES [wait] [tell]: fills a tree and a histogram in a TScifFile and writes FILES times.

wait: filled, the last file is written once a line comes in; "waiting" is said before.
tell: "written" is said when that one is handed over.
"""

import os
import sys
import warnings

warnings.filterwarnings("ignore")
import ROOT  # noqa: E402

assert ROOT.gSystem.Load(os.environ["WHERRY_ROOT_LIBRARY"]) >= 0
ROOT.gInterpreter.Declare(r"""
#include <TFile.h>
#include <TH1D.h>
#include <TTree.h>
#include <cstdio>

int work(const char* url, int seed, int files, int entries, bool wait, bool tell) {
  auto* file = TFile::Open(url, "RECREATE");
  if (file == nullptr || file->IsZombie()) return 1;
  if (std::string(file->ClassName()) != "TScifFile") return 2;
  auto* tree = new TTree("tree", "of a worker");
  auto* histogram = new TH1D("histogram", "", 10, 0, 10);
  int worker = seed, number = 0;
  std::vector<float> values;
  tree->Branch("worker", &worker);
  tree->Branch("number", &number);
  tree->Branch("values", &values);
  for (int i = 0; i < files; ++i) {
    for (int k = 0; k < entries; ++k, ++number) {
      values.assign(number % 7, seed + number);
      tree->Fill();
      histogram->Fill(number % 10);
    }
    if (wait && i == files - 1) {
      tree->FlushBaskets();
      std::puts("waiting");
      std::fflush(stdout);
      std::getchar();
    }
    if (file->Write() < 0) return 3;
    if (file->TestBit(TFile::kWriteError)) return 4;
  }
  if (tell) {
    std::puts("written");
    std::fflush(stdout);
  }
  file->Close();
  const bool failed = file->TestBit(TFile::kWriteError);
  delete file;
  return failed ? 5 : 0;
}
""")
sys.exit(ROOT.work(sys.argv[1], *(int(word) for word in sys.argv[2:5]), *(word in sys.argv[5:] for word in ("wait", "tell"))))
