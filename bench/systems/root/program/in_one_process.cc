// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <ROOT/RNTupleFillContext.hxx>
#include <ROOT/RNTupleModel.hxx>
#include <ROOT/RNTupleParallelWriter.hxx>
#include <ROOT/TBufferMerger.hxx>

#include "bench/systems/root/program/alone.hpp"
#include "bench/systems/root/program/file_worker.hpp"
#include "bench/systems/root/program/output.hpp"

namespace wherry::bench::root {
namespace {

class BufferMerger final : public Workshop {
 public:
  explicit BufferMerger(const Task& task)
      : task_(task),
        merger_(std::make_unique<ROOT::TBufferMerger>(task.output.c_str(), "RECREATE", compression_of(task.job.tree))) {
  }

  std::unique_ptr<Worker> hire(std::uint32_t /*number*/) override {
    return std::make_unique<FileWorker>(task_, merger_->GetFile());
  }
  void close() override {
    merger_.reset();
    task_.shared.stamp();
    check_output(task_);
  }

 private:
  const Task& task_;
  std::unique_ptr<ROOT::TBufferMerger> merger_;
};

using Numbers = std::array<double, Filler::kNumbers>;

/// What is a file elsewhere is a cluster here.
class NTupleFiller final : public Worker {
 public:
  NTupleFiller(const Task& task, std::shared_ptr<ROOT::RNTupleFillContext> context)
      : entries_(task.image.entries), context_(std::move(context)), entry_(context_->CreateEntry()) {}

  void produce() override {
    const auto numbers = entry_->GetPtr<Numbers>("numbers");
    for (std::uint64_t i = 0; i < entries_; ++i) {
      compute(*numbers, next_++);
      context_->Fill(*entry_);
    }
  }
  void hand_over() override { context_->FlushCluster(); }
  void leave() override {
    entry_.reset();
    context_.reset();
  }

 private:
  std::uint64_t entries_;
  std::shared_ptr<ROOT::RNTupleFillContext> context_;
  std::unique_ptr<ROOT::REntry> entry_;
  std::uint64_t next_ = 0;
};

class NTupleWriter final : public Workshop {
 public:
  explicit NTupleWriter(const Task& task) : task_(task) {
    auto model = ROOT::RNTupleModel::CreateBare();
    model->MakeField<Numbers>("numbers");
    ROOT::RNTupleWriteOptions options;
    options.SetCompression(static_cast<std::uint32_t>(compression_of(task.job.tree)));
    writer_ = ROOT::RNTupleParallelWriter::Recreate(std::move(model), kTreeName, task.output, options);
  }

  std::unique_ptr<Worker> hire(std::uint32_t /*number*/) override {
    return std::make_unique<NTupleFiller>(task_, writer_->CreateFillContext());
  }
  void close() override {
    writer_.reset();
    task_.shared.stamp();
    check_ntuple(task_);
  }

 private:
  const Task& task_;
  std::unique_ptr<ROOT::RNTupleParallelWriter> writer_;
};

}  // namespace

std::unique_ptr<Workshop> make_buffer_merger(const Task& task) { return std::make_unique<BufferMerger>(task); }

std::unique_ptr<Workshop> make_ntuple_writer(const Task& task) { return std::make_unique<NTupleWriter>(task); }

}  // namespace wherry::bench::root
