// SPDX-License-Identifier: Apache-2.0
// The sender's and the receiver's access to the page that adapters/root/layout/sent.hpp describes.
//
// Problem: if a sender rings the bell after the receiver has already found the bytes, the descriptor becomes readable
// with nothing to receive. TMonitor's loops then call Recv(), which blocks on this peer while others have sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <wherry/stream.hpp>

#include "adapters/root/layout/sent.hpp"

namespace wherry::root {

/// The sender's end: counts the bytes that this side has sent.
class OwnSent {
 public:
  /// Registers a page for the peer to map. Throws Error.
  explicit OwnSent(Windows windows);
  OwnSent(const OwnSent&) = delete;
  OwnSent& operator=(const OwnSent&) = delete;
  ~OwnSent();

  /// Adds the bytes that a call has sent. To be called after the call has returned, hence after it rang the bell.
  void add(std::size_t bytes);

 private:
  std::span<std::byte> memory_;
  std::uint64_t sent_ = 0;
};

/// The receiver's end: reads the peer's count.
class PeersSent {
 public:
  /// Blocks until the peer's calls that sent the first `received` bytes have returned, or until `stream` has more to
  /// receive. If the peer does not update its count within kSentTimeout, later calls do not wait.
  void await(Stream& stream, std::uint64_t received);

 private:
  bool find(Stream& stream);
  [[nodiscard]] bool over(std::uint64_t received) const;

  MappedWindow mapped_;
  bool useless_ = false;
};

}  // namespace wherry::root
