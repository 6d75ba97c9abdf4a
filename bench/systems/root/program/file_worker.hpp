// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <TFile.h>

#include "bench/systems/root/program/task.hpp"

namespace wherry::bench::root {

/// Fills the tree in a file that Write() hands over.
class FileWorker final : public Worker {
 public:
  FileWorker(const Task& task, std::shared_ptr<TFile> file)
      : entries_(task.image.entries), file_(std::move(file)), filler_(*file_) {}

  void produce() override { filler_.fill(entries_); }
  void hand_over() override { file_->Write(); }
  void leave() override {
    file_->Close();
    file_.reset();
  }

 private:
  std::uint64_t entries_;
  std::shared_ptr<TFile> file_;
  Filler filler_;
};

}  // namespace wherry::bench::root
