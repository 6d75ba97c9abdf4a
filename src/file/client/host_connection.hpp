// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <wherry/stream.hpp>

#include "base/unique_fd.hpp"
#include "file/wire/fault_point.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// A list of buffers, consumed from the front.
class Buffers {
 public:
  explicit Buffers(std::span<const iovec> buffers) : rest_(buffers) { skip(0); }

  [[nodiscard]] std::uint64_t bytes() const;
  /// The front, at most `most` bytes of it; empty at the end.
  [[nodiscard]] std::span<std::byte> front(std::size_t most) const;
  /// `bytes` of the front are done with.
  void skip(std::size_t bytes);

 private:
  std::span<const iovec> rest_;
  std::size_t done_ = 0;  ///< bytes of the first
};

/// One connection to a host's file server: sends a request, receives its answer. A server is trusted with what a file
/// holds, and with nothing else: each head of an answer is copied and checked. Nothing throws but the constructor and
/// where memory lacks; after `false` or an empty result the connection is of no more use.
class HostConnection {
 public:
  /// Connects. Throws Error: as wherry::connect, and EPROTO if what answers is no server of this version.
  /// @param listener_wait  how long to wait for a listener, as for wherry::start_connect
  /// @param timeout  for each of connecting and greeting; empty: the configured one of wherry::connect, kGreeting
  HostConnection(const std::string& address, std::size_t ring_bytes, AtFaultPoint at, Timeout listener_wait,
                 Timeout timeout = {});
  static constexpr std::chrono::seconds kGreeting{10};
  /// For a server that has been met: its clients have a policy of their own for one that is gone.
  static constexpr std::chrono::nanoseconds kNoWait{0};

  [[nodiscard]] const layout::FileHello& server() const { return hello_; }
  /// The server's process (a pidfd), if it runs under this kernel and lends files; otherwise -1. Every answer comes
  /// from that very process: it lived when this was opened, so the number was its own.
  [[nodiscard]] int lender() const { return lender_.get(); }

  /// Ends every call that waits, and later ones. From any thread.
  void cancel() noexcept { stream_.cancel(); }

  /// Numbers the request and sends it, its names, and the data.
  [[nodiscard]] bool send(layout::FileRequest request, std::string_view name, std::string_view second, Buffers data,
                          std::uint64_t data_bytes);
  /// The head of the next answer to it.
  [[nodiscard]] std::optional<layout::FileAnswer> receive_head();
  /// The whole answer of a call whose payload is `T` where it succeeds; `payload` may be null for one without any.
  [[nodiscard]] std::optional<layout::FileAnswer> receive(std::span<std::byte> payload);
  [[nodiscard]] std::optional<layout::FileAnswer> receive(std::vector<std::byte>& payload, std::size_t most);
  /// What a read came to: bytes moved into the buffers, and an errno value where it ended early.
  struct Read {
    std::uint64_t bytes;
    int error;
  };
  [[nodiscard]] std::optional<Read> receive_data(Buffers into, std::uint64_t length);

 private:
  [[nodiscard]] bool receive_all(std::span<std::byte> bytes);

  Stream stream_;
  layout::FileHello hello_{};
  UniqueFd lender_;
  std::uint32_t id_ = 0;
  AtFaultPoint at_;
};

}  // namespace wherry::file
