// SPDX-License-Identifier: Apache-2.0
#include "matching.hpp"

namespace wherry::mpi {
namespace {

bool fits(const Pattern& receive, const Envelope& message, std::uint64_t source) {
  if (receive.source != kAnySource && receive.source != source) return false;
  return !message.tagged || ((receive.tag ^ message.tag) & ~receive.ignore) == 0;
}

}  // namespace

void Unexpected::reset() {
  from = nullptr;
  envelope = Envelope();
  wants_reply = announced = false;
  peer_request = 0;
  remote_pieces = 0;
  payload.reset();
  inflow = nullptr;
  own = nullptr;
  claimed = nullptr;
  error = 0;
  round = 0;
}

Receive* Matching::receive_for(const Envelope& message, std::uint64_t source) {
  return posted_[message.tagged ? 1 : 0].find([&](Receive& receive) { return fits(receive, message, source); });
}

Unexpected* Matching::message_for(const Pattern& pattern) {
  return unexpected_[pattern.tagged ? 1 : 0].find(
      [&](Unexpected& message) { return fits(pattern, message.envelope, source_of(message.from)); });
}

void Matching::claim(Unexpected& message, void* context) {
  message.unlink();
  message.claimed = context;
  claimed_.push_back(message);
}

Unexpected* Matching::take_claimed(const void* context) {
  Unexpected* found = claimed_.find([&](Unexpected& message) { return message.claimed == context; });
  if (found != nullptr) found->unlink();
  return found;
}

Receive* Matching::posted_with(const void* context) {
  for (auto& list : posted_) {
    Receive* found = list.find([&](Receive& receive) { return receive.context == context; });
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace wherry::mpi
