// SPDX-License-Identifier: Apache-2.0
// A worker's side of a WindowServer: files are written where the server will read them.
//
//   wherry::root::WindowClient client("wherry://0:2000");
//   auto memory = client.grow(bytes);            // in the server's memory; contiguous
//   write(memory);
//   client.post("out.root", bytes);              // the next grow begins the next file
//   client.finish();
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <wherry/error.hpp>
#include <wherry/stream.hpp>

namespace wherry::root {

struct ClientOptions {
  Timeout connect_timeout = {};  ///< as for wherry::connect; empty: the configured one
  /// How long to look for a restarted server when the connection breaks: what was posted and not done is posted again,
  /// what was begun goes on. Or for the first one, if none listens. 0: either is an error.
  std::chrono::milliseconds reconnect{0};
  /// A worker that posts a small file no later than that after the last keeps its lease for the next. One that takes
  /// longer has time to ask for another, and others may use the memory meanwhile.
  std::chrono::milliseconds swift{100};
};

/// Threads: one at a time; objects are independent of each other. Everything throws Error: ECONNRESET when the server
/// is gone (the text says how many files were not done), EPROTO when it wrote nonsense, EFBIG beyond the server's
/// largest file, ECANCELED when the server refused this worker (the text says why). After an error every call throws it
/// again.
class WindowClient {
 public:
  class Impl;
  /// Connects. Throws Error as wherry::connect does.
  explicit WindowClient(std::string_view address, ClientOptions options = {});
  WindowClient(WindowClient&&) noexcept;
  WindowClient& operator=(WindowClient&&) noexcept;
  /// Leaves without finishing what was not posted; does not wait.
  ~WindowClient();

  /// The memory of the file being written: at least `bytes`, contiguous. What was written stays, its address may
  /// change. Holds nothing before the first call for a file; blocks until the server has memory.
  std::span<std::byte> grow(std::size_t bytes);
  /// What grow returned last for this file; empty before.
  [[nodiscard]] std::span<std::byte> file() const noexcept;
  /// Hands over the first `bytes` of it, as `name` (at most 4095 bytes). Does not wait. Returns its sequence number,
  /// which counts from 1.
  std::uint64_t post(std::string_view name, std::size_t bytes);
  /// Gives the memory of the file being written back unposted.
  void discard();
  /// Blocks until at most `files` of those posted are not done.
  void wait(std::size_t files = 0);
  /// How many posted files are not done, as far as this side has received.
  [[nodiscard]] std::size_t pending() const noexcept;
  /// Waits until all is done, says so to the server, and closes.
  void finish();
  /// The largest file the server takes.
  [[nodiscard]] std::size_t max_file() const noexcept;
  /// How many workers connected to this server before.
  [[nodiscard]] std::uint32_t number() const noexcept;
  /// Where a file handed over as `name` can be read when this has finished; empty if the server does not say.
  [[nodiscard]] std::string output_of(std::string_view name) const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::root
