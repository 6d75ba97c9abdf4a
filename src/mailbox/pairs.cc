// SPDX-License-Identifier: Apache-2.0
#include "mailbox/pairs.hpp"

#include <algorithm>

namespace wherry::mailbox {

std::size_t Pairs::free_number() const noexcept {
  return static_cast<std::size_t>(std::find(pairs_.begin(), pairs_.end(), nullptr) - pairs_.begin());
}

Pair* Pairs::find_at(const Address& address) const noexcept {
  for (const auto& pair : pairs_) {
    if (pair == nullptr || pair->state == State::lost || pair->gone || !pair->address) continue;
    if (pair->address->node == address.node && pair->address->port == address.port) return pair.get();
  }
  return nullptr;
}

std::size_t Pairs::reserve_another() {
  const std::size_t numbers = std::max(pairs_.size(), free_number() + 1);
  pairs_.reserve(numbers);
  losses_.reserve(numbers);
  return numbers;
}

Pair& Pairs::add() {
  (void)reserve_another();
  const std::size_t number = free_number();
  auto pair = std::make_unique<Pair>(static_cast<Peer>(number));
  if (number == pairs_.size()) pairs_.emplace_back();
  pairs_[number] = std::move(pair);
  ++living_;
  return *pairs_[number];
}

void Pairs::end(Pair& pair, int error) noexcept {
  pair.state = State::lost;
  pair.error = error;
  --living_;
  if (pair.early_received == nullptr) report_loss(pair);
}

void Pairs::remove(Peer peer) noexcept {
  std::erase_if(losses_, [&](const Mailbox::Loss& loss) { return loss.peer == peer; });
  pairs_[peer].reset();
}

std::size_t Pairs::take_losses(std::span<Mailbox::Loss> into) noexcept {
  const std::size_t count = std::min(into.size(), losses_.size());
  std::copy_n(losses_.begin(), count, into.begin());
  losses_.erase(losses_.begin(), losses_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

}  // namespace wherry::mailbox
