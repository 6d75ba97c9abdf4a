// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <wherry/stream.hpp>

#include "file/fault_point.hpp"
#include "layout/file_wire.hpp"

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
  HostConnection(const std::string& address, std::size_t ring_bytes, AtFaultPoint at);

  [[nodiscard]] const layout::FileHello& server() const { return hello_; }

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
  [[nodiscard]] bool send_piece(std::span<const std::byte> piece);

  Stream stream_;
  layout::FileHello hello_{};
  std::uint32_t id_ = 0;
  AtFaultPoint at_;
};

}  // namespace wherry::file
