// SPDX-License-Identifier: Apache-2.0
// A mailbox whose peer shakes hands as it pleases, leaves early data of its own making, and then writes what it likes
// into tail, agreement, grant, credit and section, at any moment between two calls: whatever it is, a call returns, a
// piece lies within its message, and the mailbox goes on or reports the peer lost.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include <wherry/mailbox.hpp>

#include "fabric/fabric.hpp"
#include "layout/mailbox_page.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/quieten.hpp"

namespace wherry::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBudget = 4096;
constexpr std::size_t kOverflow = 6144;
constexpr std::uint32_t kEarly = 4096;

void require(bool holds) {
  if (!holds) std::abort();
}

/// As it should be, mostly.
fabric::Offer offer_of_peer(Input& input) {
  layout::MailboxGreeting greeting{};
  greeting.magic = layout::kMailboxMagic;
  greeting.version = layout::kMailboxVersion;
  greeting.mailbox = 1 + input.number<std::uint8_t>();
  greeting.header = 64U * (1 + input.number<std::uint8_t>() % 8);
  greeting.overflow = 64U * (input.number<std::uint8_t>() % 64);
  greeting.early = input.one_in(2) ? kEarly : 0;
  fabric::Offer offer{.segment_bytes = 8192 + greeting.early};
  std::memcpy(offer.greeting.data(), &greeting, sizeof greeting);
  if (input.one_in(16)) offer.greeting[input.number<std::uint8_t>() % offer.greeting.size()] = std::byte{0x80};
  if (input.one_in(16)) offer.segment_bytes = 4096;
  return offer;
}

/// Early data at the end of the peer's own segment: messages, mostly, and a word that counts them, mostly.
void leave_early(Input& input, std::span<std::byte> segment) {
  if (segment.size() < layout::kMailboxWordsBytes + kEarly) return;
  const std::span<std::byte> area = segment.last(kEarly);
  std::size_t at = 0;
  while (input.one_in(2) && at + sizeof(std::uint64_t) <= area.size()) {
    const std::uint64_t left = area.size() - at - sizeof(std::uint64_t);
    std::uint64_t length = std::min<std::uint64_t>(input.number<std::uint16_t>() % 1024, left);
    const std::uint64_t next = at + sizeof length + (length + layout::kMailboxAlign - 1) / 8 * 8;
    if (input.one_in(16)) length = input.number<std::uint64_t>();
    std::memcpy(area.data() + at, &length, sizeof length);
    at = static_cast<std::size_t>(next);
  }
  std::uint64_t word = at;
  if (input.one_in(8)) word = input.number<std::uint64_t>();
  if (input.one_in(8)) word += input.number<std::uint8_t>() % 16;
  reinterpret_cast<layout::MailboxPage*>(segment.data())->early = word;
}

/// What the peer may write: a number, or what would come next.
void scribble(Input& input, fabric::Connection& hostile) {
  auto& page = *reinterpret_cast<layout::MailboxPage*>(hostile.map());
  auto* const section = hostile.map() + layout::kMailboxWordsBytes;
  layout::Word* const words[] = {&page.tail, &page.ack,     &page.finished, &page.grant, &page.head,
                                 &page.seen, &page.inlined, &page.overflow, &page.early};
  while (input.one_in(2)) {
    layout::Word& word = *words[input.number<std::uint8_t>() % std::size(words)];
    switch (input.number<std::uint8_t>() % 8) {
      case 0:
        word = input.number<std::uint64_t>();
        break;
      case 1:
        word = (std::uint64_t{input.number<std::uint8_t>()} << 32) + input.number<std::uint8_t>();
        break;
      case 2:
        word += input.number<std::uint8_t>();
        break;
      case 3:
        page.tail += 8U * (input.number<std::uint8_t>() % 32);
        break;
      case 4:
        page.ack += 1;
        break;
      case 5:
        page.inlined = layout::mailbox_inlined(page.tail, input.number<std::uint8_t>() % 128);
        break;
      case 6:
        page.overflow = page.tail + input.number<std::uint8_t>() % 3;
        break;
      default: {
        const auto bytes = input.take(input.number<std::uint8_t>());
        const std::size_t place = input.number<std::uint16_t>() % (kBudget / 2);
        std::memcpy(section + place, bytes.data(), bytes.size());
        break;
      }
    }
  }
  hostile.announce(input.one_in(2) ? fabric::Bell::space : fabric::Bell::data);
}

void receive(Input& input, Mailbox& mailbox) {
  Mailbox::Piece piece;
  const Result result = mailbox.try_peek(piece);
  require(!result.failed());
  if (!result.ok()) return;
  const std::size_t bytes = piece.bytes.size();
  require(bytes <= std::max<std::size_t>(kOverflow, kEarly) && piece.offset + bytes <= piece.message_bytes);
  unsigned sum = 0;  // a byte outside what is mapped would be felt
  for (const auto& part : {piece.bytes.first, piece.bytes.second}) {
    for (const std::byte byte : part) sum += std::to_integer<unsigned>(byte);
  }
  require(sum != 1U << 31);
  mailbox.consume(piece, input.one_in(4) ? bytes / 2 : bytes);
}

void send(Input& input, Mailbox& mailbox) {
  static const std::array<std::byte, 3000> kContent{};
  const std::size_t bytes = input.number<std::uint16_t>() % kContent.size();
  const Result result = mailbox.try_send(0, std::span(kContent).first(bytes));
  if (!result.failed()) return;
  constexpr std::array kKnown{EPROTO, ECONNRESET, EPIPE, EMSGSIZE, EINVAL};
  require(std::ranges::find(kKnown, result.error) != kKnown.end());
}

void lose(Mailbox& mailbox) {
  std::array<Mailbox::Loss, 4> losses;
  const std::size_t count = mailbox.losses(losses);
  for (std::size_t i = 0; i < count; ++i) mailbox.forget(losses[i].peer);
}

void play(Input& input) {
  const auto layout = static_cast<Layout>(input.number<std::uint8_t>() % 3);
  const std::size_t overflow = input.one_in(2) ? kOverflow : 0;
  Mailbox mailbox({.budget = kBudget, .header = 64, .layout = layout, .overflow = overflow});
  // Early data are claimed from segments that outlive a connection, which those of inproc do not.
  const std::string fabric = input.one_in(4) ? "shm" : "inproc";
  mailbox.listen(Address::parse("wherry+" + fabric + "://*:*"));
  const auto connecting = fabric::find(fabric).connect(mailbox.local(), offer_of_peer(input));
  leave_early(input, connecting->segment());
  (void)mailbox.wait(0ns);
  auto hostile = connecting->try_finish();
  if (hostile == nullptr || hostile->map() == nullptr) return;
  while (!input.empty()) {
    if (hostile != nullptr && hostile->remote_bytes() >= kBudget) scribble(input, *hostile);
    if (hostile != nullptr && input.one_in(16)) leave_early(input, hostile->segment());
    receive(input, mailbox);
    if (input.one_in(4)) send(input, mailbox);
    if (input.one_in(8)) (void)mailbox.wait(0ns);
    if (input.one_in(8)) mailbox.set_layout(static_cast<Layout>(input.number<std::uint8_t>() % 3));
    if (input.one_in(8)) mailbox.set_budget(input.number<std::uint16_t>() % kBudget);
    if (input.one_in(64)) hostile.reset();
    lose(mailbox);
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
    fuzz::play(input);
  } catch (const Error&) {  // of a handshake that was none
  }
  return 0;
}
