// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "tools/channel/channel.hpp"

namespace wherry::test {

/// A channel without a peer: what is received is given beforehand and then ends, what is sent is kept. It hands both
/// out in small pieces, as a ring does where it wraps.
class MemoryChannel final : public tools::Channel {
 public:
  explicit MemoryChannel(std::span<const std::byte> input = {}, std::size_t piece = 24)
      : input_(input), piece_(piece) {}

  std::span<std::byte> space() override {
    if (filled_ == space_.size()) {
      space_.assign(piece_, std::byte{});
      filled_ = 0;
    }
    return std::span(space_).subspan(filled_);
  }
  void wrote(std::size_t bytes) override {
    const auto from = space_.begin() + static_cast<std::ptrdiff_t>(filled_);
    sent_.insert(sent_.end(), from, from + static_cast<std::ptrdiff_t>(bytes));
    filled_ += bytes;
  }
  void flush() override {}
  void finish_sending() override { finished_ = true; }

  std::span<const std::byte> peek(Limit) override { return input_.first(std::min(piece_, input_.size())); }
  void took(std::size_t bytes) override { input_ = input_.subspan(bytes); }

  void cancel() override {}
  [[nodiscard]] const tools::ChannelPeer& peer() const override { return peer_; }

  [[nodiscard]] const std::vector<std::byte>& sent() const { return sent_; }
  [[nodiscard]] bool finished() const { return finished_; }

 private:
  std::span<const std::byte> input_;
  std::size_t piece_;
  std::vector<std::byte> space_;
  std::size_t filled_ = 0;
  std::vector<std::byte> sent_;
  bool finished_ = false;
  tools::ChannelPeer peer_{.address = "memory", .pid = 0, .node = {}};
};

}  // namespace wherry::test
