// SPDX-License-Identifier: Apache-2.0
// What one process of a job does with its file.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "bench/harness/message_buffer.hpp"
#include "bench/systems/file/content.hpp"
#include "bench/systems/file/job.hpp"

namespace wherry::bench::file {

/// `File` has the calls of KernelFile.
template <class File>
class Worker {
 public:
  /// The file and the job must outlive the worker. Every page of its buffer is there then, and it begins with one: some
  /// processors copy several times slower to other addresses, and malloc's depend on the program.
  Worker(const Job& job, File& file, std::uint64_t salt) : job_(job), file_(file), salt_(salt), buffer_(job.unit) {
    std::span<std::byte> bytes = buffer_.span();
    words_ = {reinterpret_cast<std::uint64_t*>(bytes.data()), bytes.size() / sizeof(std::uint64_t)};
    for (std::uint64_t offset = 0; offset < job.bytes; offset += job.unit) offsets_.push_back(offset);
    if (job.random) std::shuffle(offsets_.begin(), offsets_.end(), std::mt19937_64(salt));
    for (std::uint64_t offset = 0; uses_read() && offset < job.bytes; offset += sizeof(std::uint64_t)) {
      whole_ += word_at(salt, offset);
    }
  }

  /// All of the file once, in calls of one unit, with one buffer. Throws std::runtime_error if a call does less than it
  /// should, and if bytes that are used are not those of the file.
  void pass() {
    std::uint64_t sum = 0;
    go_through(
        [this](std::uint64_t offset) {
          if (job_.used && job_.writes) std::fill(words_.begin(), words_.end(), offset);
        },
        [&](std::uint64_t) {
          if (uses_read()) sum += sum_of(words_);
        });
    if (uses_read() && sum != whole_) throw std::runtime_error("the sum of what was read is not that of the file");
  }

  /// The same, but each unit is compared, or is what belongs at its place.
  void check() {
    go_through(
        [this](std::uint64_t offset) {
          if (job_.writes) fill(words_, salt_, offset);
        },
        [this](std::uint64_t offset) {
          if (!job_.writes) compare(offset);
        });
  }

 private:
  [[nodiscard]] bool uses_read() const { return job_.used && !job_.writes; }

  template <class Before, class After>
  void go_through(Before before, After after) {
    if (!job_.random) file_.rewind();
    for (const std::uint64_t offset : offsets_) {
      before(offset);
      expect(move(offset));
      after(offset);
    }
    if (job_.synced) file_.flush();
  }

  ssize_t move(std::uint64_t offset) {
    const std::span<std::byte> bytes = std::as_writable_bytes(words_);
    if (job_.random) return job_.writes ? file_.write_at(offset, bytes) : file_.read_at(offset, bytes);
    return job_.writes ? file_.write(bytes) : file_.read(bytes);
  }

  void expect(ssize_t moved) const {
    if (moved == static_cast<ssize_t>(job_.unit)) return;
    const char* const what = job_.writes ? "write" : "read";
    if (moved < 0) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
    throw std::runtime_error(fmt::format("{}: {} bytes instead of {}", what, moved, job_.unit));
  }

  void compare(std::uint64_t offset) const {
    const std::uint64_t wrong = first_difference(words_, salt_, offset);
    if (wrong != UINT64_MAX)
      throw std::runtime_error(fmt::format("the word read at {} is another file's, or old", wrong));
  }

  const Job& job_;
  File& file_;
  std::uint64_t salt_;
  MessageBuffer buffer_;
  std::span<std::uint64_t> words_;
  std::vector<std::uint64_t> offsets_;  // Of the calls, in their order.
  std::uint64_t whole_ = 0;             // The sum of the file's words, if it is asked for.
};

}  // namespace wherry::bench::file
