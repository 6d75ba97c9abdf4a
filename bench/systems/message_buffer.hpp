// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace wherry::bench {

/// A private buffer for messages: page aligned, and every page already there.
class MessageBuffer {
 public:
  explicit MessageBuffer(std::size_t bytes)
      : bytes_(bytes),
        memory_(static_cast<std::byte*>(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage))) {
    if (!memory_) throw std::bad_alloc();
    for (std::size_t at = 0; at < bytes; ++at) memory_.get()[at] = std::byte{1};
  }

  [[nodiscard]] std::span<std::byte> span() const { return {memory_.get(), bytes_}; }

 private:
  static constexpr std::size_t kPage = 4096;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace wherry::bench
