// SPDX-License-Identifier: Apache-2.0
// Both ends of the word that adapters/root/layout/sent.hpp describes.
//
// A bell that rings late, for bytes that its receiver had found by itself, makes a descriptor readable with nothing to
// be received. TMonitor's loops call Recv() then, which waits for one peer while the others have sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <wherry/stream.hpp>

#include "adapters/root/layout/sent.hpp"

namespace wherry::root {

/// This side's: it sends.
class OwnSent {
 public:
  /// Shows the peer a page. Throws Error.
  explicit OwnSent(Windows windows);
  OwnSent(const OwnSent&) = delete;
  OwnSent& operator=(const OwnSent&) = delete;
  ~OwnSent();

  /// Counts the bytes of a call that is over.
  void add(std::size_t bytes);

 private:
  std::span<std::byte> memory_;
  std::uint64_t sent_ = 0;
};

/// The peer's: this side receives.
class PeersSent {
 public:
  /// Waits until the peer's calls that sent the first `received` bytes are over, or `stream` has more to be received.
  /// A peer that does not say so is waited for once, for kSentTimeout at most.
  void await(Stream& stream, std::uint64_t received);

 private:
  bool find(Stream& stream);
  [[nodiscard]] bool over(std::uint64_t received) const;

  MappedWindow mapped_;
  bool useless_ = false;
};

}  // namespace wherry::root
