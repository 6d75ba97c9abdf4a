// SPDX-License-Identifier: Apache-2.0
//
// threads URL THREADS ENTRIES: threads of one process that fill a tree each, in a file of their own, of one name: the
// server makes one file of them, with one tree.
//
//   wherry-merge 'wherry://*:1095' -o out.root --workers 4
//   wherry run -- root_threads wherry://0:1095//out.root 4 50000
//
// `make build` makes the program root_threads; by hand it is
//   g++ -std=c++17 threads.cc -o root_threads $(root-config --cflags --libs)
#include <TFile.h>
#include <TH1D.h>
#include <TROOT.h>
#include <TTree.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr int kEntriesPerWrite = 10'000;

/// What one thread does. Nothing here is shared with the others.
bool fill(const char* url, int thread, int entries) {
  const std::unique_ptr<TFile> file(TFile::Open(url, "RECREATE"));
  if (!file) return false;  // ROOT has said why.
  if (std::strcmp(file->ClassName(), "TScifFile") != 0) {
    std::fprintf(stderr, "%s is a local file: start this program with `wherry run --`\n", file->GetName());
    return false;
  }
  int entry = 0;
  std::vector<float> hits;
  auto* const tree = new TTree("tree", "filled by many threads", 99, file.get());  // the file's
  tree->Branch("thread", &thread);
  tree->Branch("entry", &entry);
  tree->Branch("hits", &hits);
  auto* const sizes = new TH1D("sizes", "hits of an entry", 10, 0, 10);
  sizes->SetDirectory(file.get());
  for (; entry < entries; ++entry) {
    hits.assign(static_cast<std::size_t>(entry % 10),
                static_cast<float>(thread) + std::sqrt(static_cast<float>(entry)));
    tree->Fill();
    sizes->Fill(static_cast<double>(hits.size()));
    // Hands over what is there; tree and histogram go on empty.
    if ((entry + 1) % kEntriesPerWrite == 0 && file->Write() < 0) return false;
  }
  file->Write();
  file->Close();  // waits until the server has everything where it belongs
  return !file->TestBit(TFile::kWriteError);
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: %s URL THREADS ENTRIES\n", words[0]);
    return 2;
  }
  ROOT::EnableThreadSafety();
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < std::atoi(words[2]); ++thread) {
    threads.emplace_back([&, thread] {
      if (!fill(words[1], thread, std::atoi(words[3]))) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failed == 0 ? 0 : 1;
}
