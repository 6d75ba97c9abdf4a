// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/TScifMerger.h"

#include <TROOT.h>
#include <exception>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "adapters/root/merge/check/image_check.hpp"
#include "adapters/root/merge/join.hpp"
#include "adapters/root/merge/merged_file.hpp"
#include "adapters/root/merge/read/batch_reader.hpp"
#include "adapters/root/merge/read/known_shape.hpp"
#include "adapters/root/merge/read/source.hpp"
#include "adapters/root/merge/read/trial.hpp"
#include "adapters/root/merge/shapes.hpp"

class TScifMerger::Impl {
 public:
  struct Input {
    std::string worker;
    std::uint64_t sequence = 0;
    std::span<const std::byte> bytes;
    Release release;
    wherry::merge::KnownShapes::Match known;  // or else:
    std::unique_ptr<wherry::merge::Source> source;
    std::string problem;
    bool duplicate = false;
  };

  Impl(const std::string& path, const Options& options) : path_(path), options_(options), reader_(options.threads) {
    if (options.threads > 1) ROOT::EnableThreadSafety();
    guard([&] { open_output(); });
  }

  [[nodiscard]] bool has(const std::string& worker, std::uint64_t sequence) const {
    if (!output_) return false;
    const auto last = output_->sequences().find(worker);
    return last != output_->sequences().end() && sequence <= last->second;
  }

  bool merge() {
    std::vector<Input> batch = std::exchange(waiting, {});
    warning.clear();
    if (batch.empty()) return open();
    for (Input& input : batch) try_first(input);
    reader_.run(batch.size(), [&](std::size_t i) { read(batch[i]); });
    const bool good = guard([&] {
      if (output_) append_batch(batch);
    });
    for (Input& input : batch) release(input, good);
    if (good) ++counts.batches;
    return good;
  }

  bool join(const std::string& other, bool whole) {
    if (!merge()) return false;
    const bool good = guard([&] { wherry::merge::join(*output_, other, whole); });
    if (good) take_warnings();
    return good;
  }

  void finish(const std::string& worker) {
    guard([&] {
      if (output_) output_->finish(worker);
    });
  }

  bool close(bool whole) {
    if (!merge()) return false;
    known_ = {};
    const bool good = guard([&] { output_->close(whole); });
    if (good) take_warnings();
    output_.reset();
    return good;
  }

  [[nodiscard]] bool open() const { return output_ != nullptr; }

  std::vector<Input> waiting;
  Counts counts;
  std::set<std::string> not_added;
  std::string error;
  std::string warning;

 private:
  template <typename Function>
  bool guard(const Function& function) {
    if (!error.empty()) return false;
    try {
      function();
      return true;
    } catch (const std::exception& problem) {
      error = problem.what();
      output_.reset();
      return false;
    }
  }

  void open_output() {
    output_.reset();
    known_ = {};  // its shapes may come from files that are not in the output
    const wherry::merge::MergedFileOptions settings{options_.compression, options_.durable, options_.compact,
                                                    options_.shapes};
    output_ = std::make_unique<wherry::merge::MergedFile>(path_, settings);
  }

  void append_batch(std::span<Input> batch) {
    try {
      for (Input& input : batch) append(input);
      output_->commit();
      take_warnings();
    } catch (const wherry::merge::FileRefused& refusal) {
      open_output();
      if (batch.size() == 1) {
        batch.front().problem = refusal.what();
      } else {
        for (Input& input : batch) append_again(input);
      }
    }
  }

  void take_warnings() {
    not_added.insert(output_->not_added().begin(), output_->not_added().end());
    for (const std::string& line : output_->take_warnings()) warning += (warning.empty() ? "" : "\n") + line;
  }

  /// Merges an input as its own batch. Used after a batch in which one input could not be merged.
  void append_again(Input& input) {
    if (input.duplicate || !input.problem.empty()) return;
    input.source.reset();
    read(input);
    append_batch({&input, 1});
  }

  void try_first(Input& input) {
    if (options_.trials == 0) return;
    --options_.trials;
    const auto watched = watch(input);
    input.problem = wherry::merge::try_to_read(input.bytes, options_.check);
  }

  void read(Input& input) const {
    input.duplicate = has(input.worker, input.sequence);
    if (input.duplicate) return;
    if (options_.check && input.problem.empty()) input.problem = wherry::merge::fault_in_image(input.bytes);
    if (!input.problem.empty()) return;
    const auto watched = watch(input);
    input.known = known_.find(input.bytes);
    if (input.known.shape) return;
    input.source = std::make_unique<wherry::merge::Source>(input.bytes);
    input.problem = input.source->error();
  }

  [[nodiscard]] std::shared_ptr<void> watch(const Input& input) const {
    return options_.watch ? options_.watch(input.worker) : nullptr;
  }

  void append(Input& input) {
    if (input.duplicate || !input.problem.empty()) return;
    const auto watched = watch(input);
    wherry::merge::Source& source = source_of(input);
    input.problem = output_->objection(source);
    if (!input.problem.empty()) return;
    output_->append(source, {{input.worker, input.sequence}});
    const auto accepts = [this](wherry::merge::Source& like) { return output_->objection(like).empty(); };
    if (input.source) known_.learn(input.source, input.bytes, accepts);
  }

  wherry::merge::Source& source_of(Input& input) {
    if (!input.known.shape) return *input.source;
    known_.note(input.known);
    return input.known.shape->become(input.bytes, input.known.headers);
  }

  void release(Input& input, bool good) {
    input.source.reset();
    if (!good && !input.duplicate) input.problem = error;
    if (input.duplicate) {
      ++counts.duplicates;
    } else if (!input.problem.empty()) {
      ++counts.refused;
    } else {
      ++counts.files;
      counts.bytes += input.bytes.size();
      if (input.known.shape) ++counts.known;
    }
    if (input.release) input.release(input.problem);
  }

  std::string path_;
  Options options_;
  wherry::merge::BatchReader reader_;
  wherry::merge::KnownShapes known_;
  std::unique_ptr<wherry::merge::MergedFile> output_;
};

// Not in the header: for an aggregate PyROOT generates a function of all members, at which cling fails with messages.
TScifMerger::Options::Options() = default;

TScifMerger::TScifMerger(const std::string& output) : TScifMerger(output, Options()) {}
TScifMerger::TScifMerger(const std::string& output, const Options& options)
    : fImpl(std::make_unique<Impl>(output, options)) {}
TScifMerger::~TScifMerger() = default;
std::shared_ptr<wherry::merge::Shapes> TScifMerger::MakeShapes() { return std::make_shared<wherry::merge::Shapes>(); }

void TScifMerger::Add(const std::string& worker, std::uint64_t sequence, const void* data, std::size_t bytes,
                      Release release) {
  Impl::Input input;
  input.worker = worker;
  input.sequence = sequence;
  input.bytes = {static_cast<const std::byte*>(data), bytes};
  input.release = std::move(release);
  fImpl->waiting.push_back(std::move(input));
}

bool TScifMerger::Has(const std::string& worker, std::uint64_t sequence) const { return fImpl->has(worker, sequence); }
void TScifMerger::Finish(const std::string& worker) { fImpl->finish(worker); }
std::size_t TScifMerger::Pending() const { return fImpl->waiting.size(); }
bool TScifMerger::Merge() { return fImpl->merge(); }
bool TScifMerger::Join(const std::string& output, bool whole) { return fImpl->join(output, whole); }
bool TScifMerger::Close(bool whole) { return fImpl->close(whole); }
bool TScifMerger::IsOpen() const { return fImpl->open(); }
const std::string& TScifMerger::Error() const { return fImpl->error; }
const std::string& TScifMerger::Warning() const { return fImpl->warning; }
std::vector<std::string> TScifMerger::NotAdded() const { return {fImpl->not_added.begin(), fImpl->not_added.end()}; }
const TScifMerger::Counts& TScifMerger::GetCounts() const { return fImpl->counts; }
