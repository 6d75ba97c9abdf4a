// SPDX-License-Identifier: Apache-2.0
// What mailboxes tell each other in the fabric's handshake. May include: base, layout, fabric.
#pragma once

#include <cstddef>

#include "fabric/fabric.hpp"
#include "layout/mailbox_page.hpp"

namespace wherry::mailbox {

/// The bytes as a greeting, whatever they are.
layout::MailboxGreeting greeting_in(const fabric::Greeting& bytes);
/// What cannot be true of a mailbox's greeting; nullptr: nothing, or it is not one.
const char* objection(const fabric::Greeting& bytes, std::size_t segment_bytes);
/// That of the peer. Throws Error(EPROTO): it is no mailbox's of this version.
layout::MailboxGreeting greeting_of(const fabric::Connection& connection);
/// What a mailbox with this greeting offers to peers.
/// @param section  bytes that a section may have
fabric::Offer offer_with(layout::MailboxGreeting greeting, std::size_t section);

}  // namespace wherry::mailbox
