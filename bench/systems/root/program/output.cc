// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/root/program/output.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include <TFile.h>
#include <TTree.h>
#include <ROOT/RNTupleReader.hxx>

namespace wherry::bench::root {
namespace {

void compare(const Task& task, std::uint64_t found) {
  const std::uint64_t wanted = std::uint64_t{task.job.workers} * task.job.files * task.image.entries;
  if (found != wanted) throw std::runtime_error(fmt::format("the output has {} entries, not {}", found, wanted));
}

}  // namespace

void check_output(const Task& task) {
  const std::unique_ptr<TFile> file(TFile::Open(task.output.c_str()));
  auto* tree = file == nullptr || file->IsZombie() ? nullptr : file->Get<TTree>(kTreeName);
  if (tree == nullptr) throw std::runtime_error("there is no output");
  compare(task, static_cast<std::uint64_t>(tree->GetEntries()));
  if (tree->GetEntry(tree->GetEntries() - 1) <= 0) throw std::runtime_error("the output cannot be read");
}

void check_ntuple(const Task& task) { compare(task, ROOT::RNTupleReader::Open(kTreeName, task.output)->GetNEntries()); }

}  // namespace wherry::bench::root
