// SPDX-License-Identifier: Apache-2.0
// A publisher and a subscriber whose peers shake hands as they please and then write what they like into queues,
// returns, and every other word, at any moment between two calls: whatever it is, a call returns, a message lies within
// the peer's pool, no memory of the publisher's is lent twice, and both go on or report an error.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>

#include <wherry/message.hpp>

#include "message/handshake.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/quieten.hpp"

namespace wherry::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPool = 1 << 14;
constexpr std::uint32_t kPlaces = 4;

void require(bool holds) {
  if (!holds) std::abort();
}

/// The words of one side that the other writes: its bells, its page, its ring.
void scribble(Input& input, fabric::Connection& hostile, std::size_t ring_words) {
  auto* const page = reinterpret_cast<layout::Word*>(hostile.map());
  auto* const ring = reinterpret_cast<layout::Word*>(hostile.map() + layout::kMessagePageBytes);
  while (input.one_in(2)) {
    layout::Word& word =
        input.one_in(4) ? page[8 + input.number<std::uint8_t>() % 16] : ring[input.number<std::uint8_t>() % ring_words];
    const std::uint64_t lap = input.number<std::uint8_t>() % 4;
    const std::uint64_t low = input.number<std::uint16_t>();
    switch (input.number<std::uint8_t>() % 5) {
      case 0:
        word = lap << layout::kMessageTicketBits | low % (2 * kPlaces);
        break;
      case 1:
        word = lap << layout::kMessageLengthBits | low;
        break;
      case 2:
        word = low % (2 * kPool / layout::kMessageGrain) << layout::kMessageTicketBits | lap;
        break;
      case 3:
        word = lap;
        break;
      default:
        word = input.number<std::uint64_t>();
        break;
    }
  }
  hostile.announce(input.one_in(2) ? fabric::Bell::data : fabric::Bell::space);
}

/// As it should be, mostly.
fabric::Offer spoilt(Input& input, fabric::Offer offer) {
  if (input.one_in(16)) offer.greeting[input.number<std::uint8_t>() % offer.greeting.size()] = std::byte{0x80};
  if (input.one_in(16)) offer.segment_bytes = 4096;
  if (input.one_in(16)) offer.shared = nullptr;
  return offer;
}

template <class Victim>
std::unique_ptr<fabric::Connection> meet(Victim& victim, const fabric::Offer& offer) {
  const auto connecting = fabric::find("inproc").connect(victim.local(), offer);
  victim.admit();
  return connecting->try_finish();
}

/// Every result is one that the interface knows.
void require_known(const Result& result) {
  if (result.error == 0) return;
  constexpr std::array kKnown{EPROTO, ECONNRESET, ETIMEDOUT, EPIPE, ENOBUFS, EMSGSIZE, EINVAL};
  require(std::ranges::find(kKnown, result.error) != kKnown.end());
}

void take(Input& input, Subscriber& subscriber, std::deque<Message>& held) {
  Message message;
  const Result result = input.one_in(8) ? subscriber.take(message, 0ns) : subscriber.try_take(message);
  require_known(result);
  if (!message.held()) return;
  require(result.bytes == message.bytes().size() && result.bytes <= kPool);
  unsigned sum = 0;  // a byte outside what is mapped would be felt
  for (const std::byte byte : message.bytes()) sum += std::to_integer<unsigned>(byte);
  require(sum != 1U << 31);
  held.push_back(std::move(message));
}

void subscribe(Input& input) {
  Subscriber subscriber({.queue = kPlaces, .overflow = input.one_in(2) ? Overflow::drop_oldest : Overflow::wait});
  subscriber.listen("wherry+inproc://*:*");
  const auto pool = fabric::find("inproc").share(kPool);
  auto hostile = meet(subscriber, spoilt(input, message::publishers_offer(pool)));
  if (hostile == nullptr || hostile->map() == nullptr || subscriber.publishers() == 0) return;
  std::deque<Message> held;
  while (!input.empty() && subscriber.publishers() != 0) {
    if (hostile != nullptr) scribble(input, *hostile, std::size_t{2} * kPlaces);
    take(input, subscriber, held);
    if (!held.empty() && (held.size() > 3 || input.one_in(2))) held.pop_front();
    if (input.one_in(64)) hostile.reset();
    if (input.one_in(64)) (void)subscriber.descriptor();
  }
  if (input.one_in(2)) held.clear();
}

/// Lends, publishes and keeps; what this side holds is never lent to it again.
void publish(Input& input) {
  Publisher publisher({.pool_bytes = kPool});
  publisher.listen("wherry+inproc://*:*");
  const auto overflow = input.one_in(2) ? Overflow::drop_oldest : Overflow::wait;
  auto hostile = meet(publisher, spoilt(input, message::subscribers_offer(kPlaces, overflow)));
  if (hostile == nullptr || hostile->map() == nullptr || publisher.subscribers() == 0) return;
  std::deque<Loan> loans;
  std::set<const std::byte*> lent;
  while (!input.empty()) {
    if (hostile != nullptr) scribble(input, *hostile, kPlaces);
    Loan loan;
    const std::size_t bytes = input.number<std::uint16_t>() % (kPool / 4);
    require_known(input.one_in(8) ? publisher.loan(loan, bytes, 0ns) : publisher.try_loan(loan, bytes));
    if (loan.held()) {
      require(loan.bytes().size() == bytes);
      if (bytes != 0) {
        require(lent.insert(loan.bytes().data()).second);
        std::memset(loan.bytes().data(), 1, bytes);
      }
      loans.push_back(std::move(loan));
    }
    if (!loans.empty() && input.one_in(2)) {
      lent.erase(loans.front().bytes().data());
      require_known(input.one_in(8) ? publisher.publish(loans.front(), 0ns) : publisher.try_publish(loans.front()));
      loans.pop_front();
    }
    if (input.one_in(64)) hostile.reset();
    if (input.one_in(64)) (void)publisher.descriptor();
  }
}

}  // namespace
}  // namespace wherry::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  wherry::fuzz::quieten();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  fuzz::Input input({data, size});
  try {
    input.one_in(2) ? fuzz::subscribe(input) : fuzz::publish(input);
  } catch (const Error&) {  // of a handshake that was none
  }
  return 0;
}
