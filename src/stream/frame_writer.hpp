// SPDX-License-Identifier: Apache-2.0
// Writes messages into the ring of a Sender (layout/frame.hpp). Used by the sending thread.
#pragma once

#include <span>

#include "layout/frame.hpp"
#include "stream/sender.hpp"

namespace wherry::stream {

class FrameWriter {
 public:
  explicit FrameWriter(Sender& sender) : sender_(sender) {}

  [[nodiscard]] Result try_send(std::span<const iovec> pieces);
  [[nodiscard]] Result send(std::span<const iovec> pieces, fabric::Deadline deadline);
  /// Returns room for a message of `bytes`; empty with null data if there is none now.
  std::span<std::byte> reserve(std::size_t bytes);
  [[nodiscard]] Result commit(std::size_t bytes);
  [[nodiscard]] Result wait_writable(std::size_t bytes, fabric::Deadline deadline);

  void hold() { holding_ = true; }
  [[nodiscard]] Result flush();
  /// Whether flush() would send anything.
  [[nodiscard]] bool has_collected() const { return pending_ != 0; }

  [[nodiscard]] std::size_t max_message() const { return layout::max_message(sender_.capacity()); }

 private:
  template <class Wait>
  [[nodiscard]] Result send_with(std::span<const iovec> pieces, const Wait& wait);
  template <class Wait>
  [[nodiscard]] Result make_room(std::size_t frame, const Wait& wait);
  bool find_room(std::size_t frame);
  void fill_up(std::span<std::byte> rest);
  [[nodiscard]] Result close_frame(std::size_t message);
  [[nodiscard]] Result publish();

  Sender& sender_;
  std::span<std::byte> room_;  ///< after the pending frames; valid only while frames are pending or a place is reserved
  std::size_t pending_ = 0;    ///< bytes of frames written and not published
  std::size_t reserved_ = kNothing;
  bool holding_ = false;

  static constexpr std::size_t kNothing = SIZE_MAX;
};

}  // namespace wherry::stream
