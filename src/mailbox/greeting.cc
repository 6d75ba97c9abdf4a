// SPDX-License-Identifier: Apache-2.0
#include "mailbox/greeting.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <wherry/error.hpp>

namespace wherry::mailbox {
namespace {

using layout::MailboxGreeting;

bool is_of_a_mailbox(const MailboxGreeting& greeting) {
  return greeting.magic == layout::kMailboxMagic && greeting.version == layout::kMailboxVersion;
}

}  // namespace

layout::MailboxGreeting greeting_in(const fabric::Greeting& bytes) {
  MailboxGreeting greeting{};
  std::memcpy(&greeting, bytes.data(), sizeof greeting);
  return greeting;
}

const char* objection(const fabric::Greeting& bytes, std::size_t segment_bytes) {
  const MailboxGreeting greeting = greeting_in(bytes);
  if (!is_of_a_mailbox(greeting)) return nullptr;
  if (greeting.header < layout::kMailboxLine || greeting.header % layout::kMailboxLine != 0) {
    return "its header is not a multiple of 64 bytes";
  }
  if (greeting.early % layout::kMailboxAlign != 0) return "its early data are not a multiple of 8 bytes";
  const std::size_t around = layout::kMailboxWordsBytes + greeting.early;
  if (segment_bytes < around + greeting.header) return "its header is larger than its segment";
  if (segment_bytes < around + greeting.header + greeting.overflow) return "its overflow is larger than its segment";
  return greeting.mailbox == 0 ? "its mailbox has no number" : nullptr;
}

layout::MailboxGreeting greeting_of(const fabric::Connection& connection) {
  const MailboxGreeting greeting = greeting_in(connection.peer_greeting());
  const char* const wrong = objection(connection.peer_greeting(), connection.remote_bytes());
  if (is_of_a_mailbox(greeting) && wrong == nullptr) return greeting;
  throw Error(
      EPROTO, "exchange messages with", connection.peer().address.to_string(),
      wrong != nullptr
          ? std::string(wrong) + "; use one version on both sides"
          : "this port has no mailbox of this version of Wherry; use another port, or one version on both sides");
}

fabric::Offer offer_with(MailboxGreeting greeting, std::size_t section) {
  constexpr std::size_t kPage = 4096;
  greeting.magic = layout::kMailboxMagic;
  greeting.version = layout::kMailboxVersion;
  const std::size_t used =
      layout::segment_place(true) + layout::kMailboxWordsBytes + section + std::size_t{greeting.overflow};
  // Compact: a peer with little traffic takes one page on each side.
  fabric::Offer offer{.segment_bytes = (used + kPage - 1) / kPage * kPage + greeting.early,
                      .compact = true,
                      .departed = greeting.claims != 0,
                      .objection = objection};
  static_assert(sizeof greeting == sizeof offer.greeting);
  std::memcpy(offer.greeting.data(), &greeting, sizeof greeting);
  return offer;
}

}  // namespace wherry::mailbox
