// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/program/output_queue.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "adapters/root/merge/commit/journal.hpp"
#include "adapters/root/merge/program/report.hpp"

namespace wherry::merge {

namespace {
// Files that are tried one by one after a crash. By then every worker with ?reconnect has handed over again the files
// that it had handed over when the child died.
constexpr std::uint64_t kCarefulFiles = 1000;
// A batch of this many bytes gets no more files. The cost of a commit is small compared with it, and the memory of its
// files becomes free for workers only after the commit.
constexpr std::size_t kLargeBatch = std::size_t{32} << 20;
// Warnings that are remembered, in order to print each only once.
constexpr std::size_t kMostWarnings = 1000;

}  // namespace

std::unique_lock<std::mutex> alone_if_careful(const State& state) {
  static std::mutex one_output;
  return state.careful ? std::unique_lock(one_output) : std::unique_lock<std::mutex>();
}

std::mutex& name_lists() {
  static std::mutex mutex;
  return mutex;
}

std::string name_of(const root::WorkerId& worker) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string name;
  for (const std::uint8_t byte : worker) {
    name += digits[byte >> 4];
    name += digits[byte & 15];
  }
  return name;
}

OutputQueue::OutputQueue(const std::string& path, const ProgramOptions& options, State& state,
                         std::function<void(const std::string&)> message, std::shared_ptr<Shapes> shapes)
    : path_(path),
      options_(options),
      state_(state),
      message_(std::move(message)),
      careful_(state.careful ? kCarefulFiles : 0) {
  TScifMerger::Options settings;
  settings.compression = options.compression;
  settings.threads = options.threads;
  settings.trials = careful_;
  settings.durable = options.durable;
  settings.compact = options.compact;
  settings.shapes = std::move(shapes);
  settings.watch = [&state](const std::string& worker) { return std::make_shared<Busy>(state, worker); };
  const auto alone = alone_if_careful(state);
  merger_ = std::make_unique<TScifMerger>(path, settings);
  if (!merger_->IsOpen()) fail();
  thread_ = std::thread([this] { run(); });
}

OutputQueue::~OutputQueue() {
  if (thread_.joinable()) finish();
  const auto alone = alone_if_careful(state_);
  merger_.reset();
}

void OutputQueue::push(root::PostedFile file) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(file));
  }
  changed_.notify_all();
}

void OutputQueue::forget(const root::WorkerId& worker) {
  const std::lock_guard lock(mutex_);
  forgotten_.push_back(name_of(worker));
}

bool OutputQueue::finish() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
  return good_;
}

bool OutputQueue::join(const std::string& other) {
  const auto alone = alone_if_careful(state_);
  if (good_ && !merger_->Join(other, is_whole(options_, state_))) fail();
  tell_warnings();
  return good_;
}

// Every output that was begun has a journal. One that was not begun is left as it is: an older file, or none.
// Exception: if the job is whole but no worker had anything to write, a single output is written, without content.
bool OutputQueue::close() {
  const bool begun = std::filesystem::exists(Journal::path_of(path_));
  if (good_ && !begun && (options_.by_name || !is_whole(options_, state_))) {
    message_(path_ + " is left as it is: nothing was handed over that could be merged");
    return true;
  }
  const auto alone = alone_if_careful(state_);
  if (good_ && !merger_->Close(is_whole(options_, state_))) fail();
  tell_warnings();
  return good_;
}

void OutputQueue::run() {
  for (auto batch = gather(); !batch.empty(); batch = gather()) {
    if (!merge(batch)) fail();
  }
}

// Waits for as many files as there are workers. A worker that has posted one has memory for the next and continues;
// waiting for more files would make workers wait for each other. The wait is also limited by the time that the last
// batch took to merge, so that a worker which computes, or has posted its last file, does not delay the others.
std::vector<root::PostedFile> OutputQueue::gather() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
  const auto enough = [this] {
    return closing_ || queue_.size() >= std::min(options_.batch, std::max<std::size_t>(workers_, 1));
  };
  changed_.wait_for(lock, std::min<std::chrono::nanoseconds>(options_.batch_time, last_merge_), enough);
  const std::size_t most = std::min(queue_.size(), careful_ > 0 ? 1 : options_.batch);
  std::size_t count = 0;
  for (std::size_t bytes = 0; count < most && (count == 0 || bytes < kLargeBatch); ++count) {
    bytes += queue_[count].bytes().size();
  }
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<root::PostedFile> batch(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
  return batch;
}

bool OutputQueue::merge(std::vector<root::PostedFile>& batch) {
  const auto alone = alone_if_careful(state_);
  std::optional<Busy> whole_batch;
  if (careful_ > 0) {
    --careful_;
    whole_batch.emplace(state_, name_of(batch.front().worker().id));
  }
  const TScifMerger::Counts before = merger_->GetCounts();
  for (root::PostedFile& file : batch) {
    merger_->Add(name_of(file.worker().id), file.sequence(), file.bytes().data(), file.bytes().size(),
                 [this, &file](const std::string& problem) { released(file, problem); });
  }
  const auto begin = std::chrono::steady_clock::now();
  const bool good = merger_->Merge();
  last_merge_ = std::chrono::steady_clock::now() - begin;
  const TScifMerger::Counts& after = merger_->GetCounts();
  state_.files += after.files - before.files;
  state_.bytes += after.bytes - before.bytes;
  state_.batches += after.batches - before.batches;
  state_.duplicates += after.duplicates - before.duplicates;
  finish_forgotten();
  tell_warnings();
  return good;
}

// Reports finished workers to the merger. None of their files is queued: a worker finishes when all of them are done.
void OutputQueue::finish_forgotten() {
  std::vector<std::string> workers;
  {
    const std::lock_guard lock(mutex_);
    workers = std::exchange(forgotten_, {});
  }
  for (const std::string& worker : workers) merger_->Finish(worker);
}

void OutputQueue::note_not_added() {
  const std::lock_guard lock(name_lists());
  for (const std::string& path : merger_->NotAdded()) state_.not_added.insert(path_ + ":" + path);
}

// Prints each warning once: ROOT repeats it for the files of each worker.
void OutputQueue::tell_warnings() {
  note_not_added();
  std::istringstream lines(merger_->Warning());
  for (std::string line; std::getline(lines, line);) {
    if (warned_.size() < kMostWarnings && warned_.insert(line).second) message_(path_ + ": warning: " + line);
  }
}

void OutputQueue::released(root::PostedFile& file, const std::string& problem) {
  if (problem.empty()) {
    file.done();
    return;
  }
  ++state_.refused;
  {
    const std::lock_guard lock(name_lists());
    state_.refused_of.insert(path_);
  }
  message_("file " + std::to_string(file.sequence()) + " of worker " + std::to_string(file.worker().number) +
           " is refused, and the worker dropped: " + problem);
  file.refuse(problem);
}

void OutputQueue::fail() {
  if (!std::exchange(good_, false)) return;
  state_.failed = true;
  message_(path_ + ": " + merger_->Error());
}

}  // namespace wherry::merge
