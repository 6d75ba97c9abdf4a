// SPDX-License-Identifier: Apache-2.0
// The end of an "inproc" connection.
#pragma once

#include <cerrno>

#include "fabric/inproc/pair.hpp"

namespace wherry::fabric::inproc {

/// Load/store form: a put is a copy, and is complete when it returns.
class MappedEnd final : public End {
 public:
  using End::End;
  ~MappedEnd() override { leave(); }

  [[nodiscard]] std::byte* map() const override { return far().segment.far(); }
  [[nodiscard]] std::span<const std::byte> shown() const override {
    return far().shared == nullptr ? std::span<std::byte>{} : far().shared->bytes();
  }
  std::size_t put(std::uint64_t offset, std::span<const std::byte> source) override;
  bool get(std::span<std::byte> destination, std::uint64_t offset) override;
  bool signal(std::uint64_t offset, std::uint64_t value, Bell bell) override;
  Result flush(Deadline /*deadline*/) override { return peer_gone() ? Result::failure(ECONNRESET) : Result::moved(0); }

 protected:
  std::shared_ptr<memory::RemoteRegion> reach_arena(std::uint64_t place, std::size_t bytes) override;
};

}  // namespace wherry::fabric::inproc
