// SPDX-License-Identifier: Apache-2.0
//
// worker URL THREADS FILES ENTRIES: threads that fill trees as any program does that knows nothing of Wherry. Each
// opens the URL by TFile::Open and writes so many files of so many entries; an entry has the number of its thread.
#include <TFile.h>
#include <TROOT.h>
#include <TTree.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kValues = 32;

bool fill(const char* url, int thread, int files, int entries) {
  const std::unique_ptr<TFile> file(TFile::Open(url, "RECREATE", "", 0));
  if (file == nullptr || std::strcmp(file->ClassName(), "TScifFile") != 0) return false;
  int number = 0;
  int entry = 0;
  std::array<double, kValues> values{};
  auto* const tree = new TTree("events", "events", 99, file.get());  // the file's
  tree->Branch("thread", &thread, "thread/I");
  tree->Branch("file", &number, "file/I");
  tree->Branch("entry", &entry, "entry/I");
  tree->Branch("values", values.data(), "values[32]/D");
  for (; number < files; ++number) {
    for (entry = 0; entry < entries; ++entry) {
      for (std::size_t i = 0; i < kValues; ++i)
        values[i] = thread + 1e3 * number + 1e-3 * entry + static_cast<double>(i);
      tree->Fill();
    }
    if (file->Write() <= 0) return false;
  }
  file->Close();
  return !file->TestBit(TFile::kWriteError);
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  ROOT::EnableThreadSafety();
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < std::atoi(words[2]); ++thread) {
    threads.emplace_back([&, thread] {
      if (!fill(words[1], thread, std::atoi(words[3]), std::atoi(words[4]))) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failed == 0 ? 0 : 1;
}
