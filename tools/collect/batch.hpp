// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collect/pending_file.hpp"

namespace wherry::tools {

/// The files of one session that have arrived and have no names yet. They share the flush that makes them durable.
class Batch {
 public:
  struct Arrived {
    std::uint64_t id;
    std::string path;
    std::uint64_t bytes;  ///< data; holes do not count
    std::unique_ptr<PendingFile> content;
  };
  using Named = std::function<void(const Arrived&)>;
  using Refused = std::function<void(const Arrived&, const Refusal&)>;

  explicit Batch(Destination& destination) : destination_(destination) {}

  void add(Arrived file);

  [[nodiscard]] bool empty() const { return files_.empty(); }
  /// True when `settle` is due: a larger batch would not be faster, or descriptors are scarce.
  [[nodiscard]] bool full() const;
  /// Whether one of the files will get the name `path`.
  [[nodiscard]] bool holds(std::string_view path) const;

  /// Waits until all files are durable, if the destination is, and gives them their names in the order of arrival.
  /// Calls `named` or `refused` for each file, after its descriptor was closed.
  void settle(const Named& named, const Refused& refused);

 private:
  Destination& destination_;
  std::vector<Arrived> files_;
  std::uint64_t bytes_ = 0;
};

}  // namespace wherry::tools
