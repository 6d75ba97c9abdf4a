// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>
#include <string>

#include <TClass.h>
#include <TFile.h>
#include <TFileMerger.h>
#include <TMemFile.h>

#include "bench/systems/root/program/image.hpp"
#include "bench/systems/root/program/task.hpp"

namespace wherry::bench::root {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSmall = 64 << 10;

/// As the servers do it: into a file that is there already, and from files that are opened.
void merge_twice(const std::string& folder) {
  Image image = make_image(Tree::numbers, kSmall);
  const std::string output = folder + "/warm-up.root";
  for (int i = 0; i < 2; ++i) {
    TFileMerger merger(false, false);
    merger.SetPrintLevel(0);
    merger.OutputFile(output.c_str(), "UPDATE", 0);
    merger.AddAdoptFile(new TMemFile("in.root", image.bytes.data(), static_cast<Long64_t>(image.bytes.size())));
    merger.PartialMerge(TFileMerger::kAllIncremental);
  }
  const std::string copy = folder + "/warm-up-copy.root";
  {
    TFileMerger merger(false, false);
    merger.SetPrintLevel(0);
    merger.OutputFile(copy.c_str(), "RECREATE", 0);
    merger.AddFile(output.c_str(), false);
    merger.Merge();
  }
  fs::remove(output);
  fs::remove(copy);
}

}  // namespace

void warm_up(const std::string& folder) {
  merge_twice(folder);
  for (const char* name : {"TParallelMergingFile", "TScifFile"}) TClass::GetClass(name)->InheritsFrom("TFile");
}

}  // namespace wherry::bench::root
