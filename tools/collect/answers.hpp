// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "channel/channel.hpp"
#include "ship/layout/wire.hpp"

namespace wherry::tools {

/// The collector's answers to the shipper. Success is reported in batches: an answer per small file would wake the
/// shipper for each file.
class Answers {
 public:
  explicit Answers(Channel& channel) : channel_(channel) {}

  /// Reports that all paths up to `id` that were not refused are stored.
  void stored(std::uint64_t id);
  /// Reports a refusal at once, because the shipper may be sending gigabytes of the file.
  void refused(std::uint64_t id, int error, std::string_view path, std::string_view message);
  /// Sends the last answer. An empty message means success.
  void summary(std::uint64_t id, int error, std::string_view message);

 private:
  void send(layout::ShipAnswer answer, std::uint64_t id, int error, std::string_view path, std::string_view message);

  static constexpr std::uint64_t kStoredPerAnswer = 256;

  Channel& channel_;
  std::uint64_t last_reported_id_ = 0;
};

}  // namespace wherry::tools
