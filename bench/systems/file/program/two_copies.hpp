// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>

#include "bench/harness/message_buffer.hpp"
#include "bench/systems/file/program/kernel_file.hpp"

namespace wherry::bench::file {

/// A file whose data is copied twice: between the file and a ring by a thread, and between the ring and the caller's
/// buffer by the caller, at the same time. It checks nothing, so it shows about how fast two processes can move data by
/// memory that they share.
///
/// Calls return what the kernel does.
class TwoCopies {
 public:
  /// Throws std::system_error.
  TwoCopies(const std::string& path, bool writes);
  TwoCopies(const TwoCopies&) = delete;
  TwoCopies& operator=(const TwoCopies&) = delete;
  ~TwoCopies();

  ssize_t read_at(std::uint64_t offset, std::span<std::byte> to);
  ssize_t write_at(std::uint64_t offset, std::span<const std::byte> from);
  void flush() { file_.flush(); }

 private:
  enum class Call : std::uint8_t { read, write, end };
  /// A number that one side changes and the other waits for.
  class alignas(64) Word {
   public:
    void set(std::uint64_t value);
    /// Waits until it is another one than `known`: polls, then sleeps.
    [[nodiscard]] std::uint64_t other_than(std::uint64_t known) const;

   private:
    std::atomic<std::uint64_t> value_{0};
  };

  void ask(Call call, std::uint64_t offset, std::size_t bytes);
  void serve();
  void serve_read();
  void serve_write();
  [[nodiscard]] std::span<std::byte> piece(std::uint64_t position, std::size_t left);

  KernelFile file_;
  MessageBuffer ring_;
  // Of the present call: bytes that are in the ring, and that have left it; the thread adds kEnd to its own at the end.
  Word filled_{};
  Word emptied_{};
  Word calls_{};  ///< number of calls that were made
  std::uint64_t made_ = 0;
  // Written before `calls_`.
  Call call_ = Call::end;
  std::uint64_t offset_ = 0;
  std::size_t bytes_ = 0;
  // Written before the end of the call.
  ssize_t result_ = 0;
  int error_ = 0;
  std::thread thread_;  ///< the last member: it uses the others
};

}  // namespace wherry::bench::file
