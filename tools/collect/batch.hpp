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

/// Files of one session that have arrived and wait for their names: they share the flush that makes them durable.
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
  /// It is time for `settle`: a larger batch would not be faster, or descriptors are short.
  [[nodiscard]] bool full() const;
  /// Whether one of them will be called `path`.
  [[nodiscard]] bool holds(std::string_view path) const;

  /// Waits until all are durable, if the destination is to be, and gives them their names in the order they came. Each
  /// is told to one of the two, after its descriptor was closed.
  void settle(const Named& named, const Refused& refused);

 private:
  Destination& destination_;
  std::vector<Arrived> files_;
  std::uint64_t bytes_ = 0;
};

}  // namespace wherry::tools
