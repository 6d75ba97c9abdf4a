// SPDX-License-Identifier: Apache-2.0
// Helpers that the tests of the hand-over share.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "adapters/root/handover/client/client.hpp"
#include "adapters/root/handover/server/server.hpp"
#include "base/child_process.hpp"

namespace wherry::root {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
/// Longer than the test's watchdog allows, so it never elapses.
inline constexpr std::chrono::seconds kTimeout{3600};

/// The bytes of a file: no accident makes them.
inline std::byte byte_of(std::uint64_t file, std::size_t at) {
  return static_cast<std::byte>((at * 2654435761U + file * 40503U) >> 7);
}

inline void write_file(std::span<std::byte> memory, std::uint64_t file) {
  for (std::size_t at = 0; at < memory.size(); ++at) memory[at] = byte_of(file, at);
}

inline bool is_file(std::span<const std::byte> bytes, std::uint64_t file) {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] != byte_of(file, at)) return false;
  }
  return true;
}

inline void post_file(WindowClient& client, std::uint64_t file, std::size_t bytes) {
  write_file(client.grow(bytes).first(bytes), file);
  client.post(std::to_string(file), bytes);
}

/// Whether the file is as post_file posted it.
inline bool is_whole(const PostedFile& posted) { return is_file(posted.bytes(), std::stoull(posted.name())); }

/// Returns the next event of that kind; skips others.
inline Event next_of(WindowServer& server, Event::Kind kind) {
  for (;;) {
    auto event = server.next(kTimeout);
    if (!event) throw std::runtime_error("nothing happened");
    if (event->kind == kind) return std::move(*event);
  }
}

/// Polls until a condition holds that another thread fulfils soon. The test's watchdog is the limit.
template <class Condition>
void await(Condition&& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Passes the address of a server to children that were forked before it existed.
class AddressExchange {
 public:
  void announce(const WindowServer& server) {
    std::strncpy(shared_->address.data(), server.local().to_string().c_str(), shared_->address.size() - 1);
    shared_->known = true;
  }
  std::string address() const {
    await([this] { return shared_->known.load(); });
    return shared_->address.data();
  }

 private:
  struct Shared {
    std::array<char, 64> address{};
    std::atomic<bool> known{false};
  };
  SharedValue<Shared> shared_;
};

}  // namespace wherry::root
