// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "ship/layout/wire.hpp"

namespace wherry::tools {

/// The hash of a file's content, for `wherry ship` and `wherry collect`: the data in order, and each hole as its offset
/// and length. It does not depend on how the data is divided into pieces.
class ContentHash {
 public:
  ContentHash() : state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
    restart();
  }

  void restart() { XXH3_64bits_reset(state_.get()); }
  void data(std::span<const std::byte> bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }
  void hole(std::uint64_t offset, std::uint64_t length) {
    const layout::ShipHole hole{offset, length};
    XXH3_64bits_update(state_.get(), &hole, sizeof hole);
  }
  [[nodiscard]] std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace wherry::tools
