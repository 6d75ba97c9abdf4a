// SPDX-License-Identifier: Apache-2.0
// The worker's side of a WindowServer. A worker writes its files into memory of the server, which reads them in place.
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
  /// How long to retry if no server listens, or if the connection breaks. The client then posts again all files that
  /// are not done, and keeps the file being written. 0: both are errors.
  std::chrono::milliseconds reconnect{0};
  /// A worker that posts a small file at most this long after the previous one keeps its lease for the next file. A
  /// slower worker has time to ask for another lease, and others may use the memory meanwhile.
  std::chrono::milliseconds swift{100};
};

/// Writes files into the memory of a WindowServer and hands them over.
///
/// Threads: one at a time; objects are independent of each other.
///
/// Errors: calls throw Error. EINVAL: an invalid name or size. EFBIG: the file is larger than the server accepts.
/// ECONNRESET: the server is gone; the text has the number of files that were not done. EPROTO: the server sent an
/// invalid message. ECANCELED: the server closed this worker's session; the text has the reason. Except after EINVAL
/// and EFBIG, each later call that needs the server throws the same error.
class WindowClient {
 public:
  class Impl;
  /// Connects. Throws Error as wherry::connect does.
  explicit WindowClient(std::string_view address, ClientOptions options = {});
  WindowClient(WindowClient&&) noexcept;
  WindowClient& operator=(WindowClient&&) noexcept;
  /// Closes the connection without waiting. A file that was not posted is lost.
  ~WindowClient();

  /// Returns the memory of the file being written: at least `bytes`, contiguous. Bytes written before are kept, but
  /// their address may change. Blocks until the server has memory. The first call after a post begins a new file.
  std::span<std::byte> grow(std::size_t bytes);
  /// Returns the current memory of the file being written; empty before the first grow().
  [[nodiscard]] std::span<std::byte> file() const noexcept;
  /// Hands over the first `bytes` of the file as `name` (at most 4095 bytes). Does not wait for the server to read it.
  /// Returns the file's sequence number, which counts from 1.
  std::uint64_t post(std::string_view name, std::size_t bytes);
  /// Discards the file being written and returns its memory to the server.
  void discard();
  /// Blocks until at most `files` posted files are not done.
  void wait(std::size_t files = 0);
  /// Returns the number of posted files that the server has not yet reported done.
  [[nodiscard]] std::size_t pending() const noexcept;
  /// Waits until all posted files are done, tells the server that this worker has finished, and closes.
  void finish();
  /// Returns the size of the largest file that the server accepts.
  [[nodiscard]] std::size_t max_file() const noexcept;
  /// Returns how many workers connected to this server before this one.
  [[nodiscard]] std::uint32_t number() const noexcept;
  /// Returns where a file handed over as `name` can be read after finish(); empty if the server did not tell.
  [[nodiscard]] std::string output_of(std::string_view name) const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::root
