// SPDX-License-Identifier: Apache-2.0
// Finds messages in the ring that a Receiver reads (layout/frame.hpp), and shows them in place. Used by the receiving
// thread. A hostile sender may change a header at any moment: it is copied once and checked.
#pragma once

#include <span>

#include "layout/frame.hpp"
#include "stream/receiver.hpp"

namespace wherry::stream {

class FrameReader {
 public:
  explicit FrameReader(Receiver& receiver) : receiver_(receiver) {}

  /// `message` is shown until the next call; set if the result is `moved`.
  [[nodiscard]] Result try_receive(std::span<const std::byte>& message);
  [[nodiscard]] Result receive(std::span<const std::byte>& message, fabric::Deadline deadline);
  /// The last message is no longer looked at: gives all that was shown back to the sender.
  [[nodiscard]] Result let_go();

  [[nodiscard]] std::size_t max_message() const { return layout::max_message(receiver_.capacity()); }

 private:
  [[nodiscard]] Result take(std::span<const std::byte>& message);
  bool look_further();
  [[nodiscard]] Result consume_passed();

  Receiver& receiver_;
  std::span<const std::byte> here_;   ///< frames that have arrived, in one piece
  std::span<const std::byte> after_;  ///< and those at the ring's start, behind them
  std::size_t shown_ = 0;             ///< bytes of the frame that the program looks at
  std::size_t passed_ = 0;            ///< bytes before it that are not given back yet
  bool broken_ = false;
};

}  // namespace wherry::stream
