// SPDX-License-Identifier: Apache-2.0
// What every library needs: errors as exceptions, a first message that proves the connection, private buffers.
#pragma once

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>

#include "bench/harness/system.hpp"

namespace wherry::bench {

/// What a module exports: one system for each argument, made of it.
template <class Made, class... Kinds>
Systems* made_of(Kinds... kinds) {
  static Systems systems;
  (systems.push_back(std::make_unique<Made>(kinds)), ...);
  return &systems;
}

/// Throws unless `ok`; `why` is the library's own text for its error.
inline void require(bool ok, const std::string& what, const char* why) {
  if (!ok) throw std::runtime_error(what + ": " + why);
}

/// Libraries connect in the background, but the clock starts when all are connected: each sender sends one message of
/// no use, and the receiver takes one for each, which may be others' next ones instead; the warm-up gets the rest.
inline void greet(Link& link, const Place& place) {
  if (!place.receives()) {
    link.prepare();
    link.send();
    return;
  }
  for (std::uint32_t sender = 0; sender < place.sample.senders; ++sender) link.receive();
}

/// How many messages may wait in a library's queue: 1 MB of them, which stays in the cache, and 2 to 1000. With a queue
/// of 64 MB ZeroMQ moves half as much of 1 MB messages.
inline int queue_length(const Sample& sample) {
  constexpr std::size_t kQueuedBytes = 1 << 20;
  const std::size_t bytes = std::max<std::size_t>(sample.size, 1) * sample.senders;
  return static_cast<int>(std::clamp<std::size_t>(kQueuedBytes / bytes, 2, 1000));
}

/// For libraries that allocate each message: what they free is kept for the next one, instead of going back to the
/// kernel and coming again page by page. nanomsg moves twice as much of 1 MB messages.
inline void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

/// `count` private buffers, with their pages there before the clock starts.
class PrivateBuffers {
 public:
  PrivateBuffers(std::size_t size, std::size_t count)
      : size_(size), count_(count), stride_((size + 4095) / 4096 * 4096) {
    void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap of the payload buffers");
    memory_ = static_cast<std::byte*>(memory);
  }
  PrivateBuffers(const PrivateBuffers&) = delete;
  PrivateBuffers& operator=(const PrivateBuffers&) = delete;
  ~PrivateBuffers() { munmap(memory_, bytes()); }

  /// The same buffers again, in turn.
  [[nodiscard]] std::span<std::byte> at(std::uint64_t turn) const { return {memory_ + turn % count_ * stride_, size_}; }

 private:
  [[nodiscard]] std::size_t bytes() const { return std::max<std::size_t>(stride_ * count_, 4096); }

  std::size_t size_;
  std::size_t count_;
  std::size_t stride_;
  std::byte* memory_ = nullptr;
};

}  // namespace wherry::bench
