// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "channel/channel.hpp"
#include "ship/layout/wire.hpp"

namespace wherry::tools {

/// The collector's answers to the shipper. Success is reported by the dozen: an answer per small file would wake the
/// shipper per small file.
class Answers {
 public:
  explicit Answers(Channel& channel) : channel_(channel) {}

  /// `id`, and everything before it that was not refused, is stored.
  void stored(std::uint64_t id);
  /// At once: the shipper may be sending gigabytes of it.
  void refused(std::uint64_t id, int error, std::string_view path, std::string_view message);
  /// The last answer. No message: all went well.
  void summary(std::uint64_t id, int error, std::string_view message);

 private:
  void send(layout::ShipAnswer answer, std::uint64_t id, int error, std::string_view path, std::string_view message);

  static constexpr std::uint64_t kStoredPerAnswer = 256;

  Channel& channel_;
  std::uint64_t told_ = 0;
};

}  // namespace wherry::tools
