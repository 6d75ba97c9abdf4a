// SPDX-License-Identifier: Apache-2.0
// Finds messages in the ring of a Receiver (layout/frame.hpp) and shows them in place. Used by the receiving thread. A
// hostile sender may change a header at any moment, so each header is copied once and checked.
#pragma once

#include <span>

#include "layout/frame.hpp"
#include "stream/receiver.hpp"

namespace wherry::stream {

class FrameReader {
 public:
  explicit FrameReader(Receiver& receiver) : receiver_(receiver) {}

  /// `message` is set if the result is `moved`, and valid until the next call.
  [[nodiscard]] Result try_receive(std::span<const std::byte>& message);
  [[nodiscard]] Result receive(std::span<const std::byte>& message, fabric::Deadline deadline);
  /// Ends the use of the last message: returns all credit for frames shown so far.
  [[nodiscard]] Result consume_shown();

  [[nodiscard]] std::size_t max_message() const { return layout::max_message(receiver_.capacity()); }

 private:
  [[nodiscard]] Result take(std::span<const std::byte>& message);
  bool look_further();
  [[nodiscard]] Result consume_passed();

  Receiver& receiver_;
  std::span<const std::byte> here_;   ///< frames that have arrived, in one piece
  std::span<const std::byte> after_;  ///< those at the ring's start, which follow
  std::size_t shown_ = 0;             ///< bytes of the frame that the program uses
  std::size_t passed_ = 0;            ///< bytes before it whose credit is not returned yet
  bool broken_ = false;
};

}  // namespace wherry::stream
