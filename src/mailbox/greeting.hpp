// SPDX-License-Identifier: Apache-2.0
// The greeting that mailboxes exchange in the fabric's handshake.
//
// May include: base, layout, fabric.
#pragma once

#include <cstddef>

#include "fabric/fabric.hpp"
#include "layout/mailbox_page.hpp"

namespace wherry::mailbox {

/// Reads the bytes as a greeting, without checking them.
layout::MailboxGreeting greeting_in(const fabric::Greeting& bytes);
/// Returns what is invalid in a mailbox's greeting. Null: it is valid, or not a greeting of a mailbox of this version.
const char* objection(const fabric::Greeting& bytes, std::size_t segment_bytes);
/// Returns the peer's greeting. Throws Error(EPROTO) if it is invalid, or not a greeting of a mailbox of this version.
layout::MailboxGreeting greeting_of(const fabric::Connection& connection);
/// Makes the offer of a mailbox with this greeting.
/// @param section  the largest size of a section, in bytes
fabric::Offer offer_with(layout::MailboxGreeting greeting, std::size_t section);

}  // namespace wherry::mailbox
