// SPDX-License-Identifier: Apache-2.0
// Links over what the kernel calls a file: sockets and pipes.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "base/unique_fd.hpp"
#include "bench/harness/message_buffer.hpp"
#include "bench/harness/system.hpp"

namespace wherry::bench {

/// One end of a single connection: blocking write and read of whole messages. A socket is given twice. It keeps the
/// `idle` connections open that are there besides.
class DescriptorLink final : public Link {
 public:
  DescriptorLink(UniqueFd in, UniqueFd out, std::size_t size, std::vector<UniqueFd> idle = {});

  std::span<std::byte> prepare() override { return out_buffer_.span(); }
  void send() override;
  std::span<const std::byte> receive() override;

 private:
  UniqueFd in_;
  UniqueFd out_;
  std::vector<UniqueFd> idle_;
  MessageBuffer out_buffer_;
  MessageBuffer in_buffer_;
};

/// Receives from many: epoll says which are ready; of those it reads what is there, each into a buffer of its own.
class ManyDescriptorsLink final : public Link {
 public:
  ManyDescriptorsLink(std::vector<UniqueFd> descriptors, std::size_t size);

  std::span<std::byte> prepare() override;
  void send() override;
  std::span<const std::byte> receive() override;

 private:
  struct Sender {
    Sender(UniqueFd from, std::size_t size) : descriptor(std::move(from)), buffer(size) {}
    /// True when a message is complete.
    bool read_some();
    UniqueFd descriptor;
    MessageBuffer buffer;
    std::size_t filled = 0;
  };

  UniqueFd epoll_;
  std::deque<Sender> senders_;
  std::array<epoll_event, 64> events_{};
  std::size_t next_ = 0;
  std::size_t ready_ = 0;
};

}  // namespace wherry::bench
