// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace wherry::bench {

/// A private buffer for messages: page aligned, and every page already there. Made when it is first asked for, since an
/// end that only sends needs none to receive into.
class MessageBuffer {
 public:
  explicit MessageBuffer(std::size_t bytes) : bytes_(bytes) {}

  [[nodiscard]] std::size_t size() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> span() {
    if (!memory_) make();
    return {memory_.get(), bytes_};
  }

 private:
  static constexpr std::size_t kPage = 4096;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  void make() {
    const std::size_t whole = (bytes_ + kPage - 1) / kPage * kPage;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, whole)));
    if (!memory_) throw std::bad_alloc();
    std::memset(memory_.get(), 1, bytes_);
  }

  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace wherry::bench
