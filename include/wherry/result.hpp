// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/require_cxx20.hpp>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>

namespace wherry {

/// The outcome of a call that moves data.
enum class Status : std::uint8_t {
  moved,        ///< `bytes` bytes were moved: at least one, unless the call asked for none
  would_block,  ///< nothing can be moved now; wait for the descriptor, or make the blocking call
  end,          ///< the peer finished sending and all of its bytes were received; or the end of a file
  failed,       ///< `error` is the reason; `bytes` bytes were moved before the failure
};

/// The result of a call that moves data. It is never thrown and never allocates, so it is safe on the fast path and in
/// signal-driven code. True in a condition if the status is `moved`: `while (const Result got = stream.receive(...))`
/// stops at the end and at a failure. A call may be ignored if the next call of its kind reports its failure again; all
/// others are [[nodiscard]].
struct Result {
  std::size_t bytes = 0;          ///< bytes moved by this call, also when the status is `failed`
  Status status = Status::moved;  ///< see Status
  int error = 0;                  ///< an errno value when the status is `failed`, otherwise 0

  [[nodiscard]] constexpr bool ok() const { return status == Status::moved; }
  [[nodiscard]] constexpr bool would_block() const { return status == Status::would_block; }
  [[nodiscard]] constexpr bool ended() const { return status == Status::end; }
  [[nodiscard]] constexpr bool failed() const { return status == Status::failed; }
  constexpr explicit operator bool() const { return ok(); }

  /// A text for people: "4096 bytes", "would block", "end", "Broken pipe (EPIPE)", "Connection timed out (ETIMEDOUT)
  /// after 12 bytes".
  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] static constexpr Result moved(std::size_t bytes) { return {bytes, Status::moved, 0}; }
  [[nodiscard]] static constexpr Result blocked() { return {0, Status::would_block, 0}; }
  [[nodiscard]] static constexpr Result at_end() { return {0, Status::end, 0}; }
  [[nodiscard]] static constexpr Result failure(int error, std::size_t bytes = 0) {
    return {bytes, Status::failed, error};
  }
};

std::ostream& operator<<(std::ostream& to, const Result& result);

/// A range of a ring: one piece, or two if it wraps. `second` is empty unless `first` reaches the ring's end.
template <class Byte>
struct BasicRegions {
  std::span<Byte> first;
  std::span<Byte> second;

  [[nodiscard]] constexpr std::size_t size() const { return first.size() + second.size(); }
  [[nodiscard]] constexpr bool empty() const { return first.empty(); }
};

using Regions = BasicRegions<std::byte>;             ///< space to write into (Stream::reserve)
using ConstRegions = BasicRegions<const std::byte>;  ///< bytes to read in place (Stream::peek)

}  // namespace wherry
