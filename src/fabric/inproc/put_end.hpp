// SPDX-License-Identifier: Apache-2.0
// The end of an "inproc-put" connection.
#pragma once

#include "fabric/inproc/put_queue.hpp"

namespace wherry::fabric::inproc {

/// The two queues of a put-only connection.
struct PutPair : Pair {
  std::array<std::shared_ptr<PutQueue>, 2> queues;  // [side that sends]
};

/// Put form: the wire carries out all operations.
class PutEnd final : public End {
 public:
  PutEnd(std::shared_ptr<PutPair> pair, std::size_t side, Peer peer);
  ~PutEnd() override;

  std::size_t put(std::uint64_t offset, std::span<const std::byte> source) override;
  bool get(std::span<std::byte> destination, std::uint64_t offset) override;
  bool signal(std::uint64_t offset, std::uint64_t value, Bell bell) override;
  Result flush(Deadline deadline) override;

 protected:
  std::shared_ptr<memory::RemoteRegion> reach_arena(std::uint64_t place, std::size_t bytes) override;

 private:
  [[nodiscard]] std::byte* far_memory() const { return far().segment.far(); }

  PutQueue& queue_;
  PutQueue& far_queue_;
};

}  // namespace wherry::fabric::inproc
