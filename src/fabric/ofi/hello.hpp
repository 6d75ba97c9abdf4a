// SPDX-License-Identifier: Apache-2.0
// Hellos of the rendezvous: how they are written, proved and read. Nothing here trusts the bytes of a peer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fabric/ofi/introduction.hpp"
#include "fabric/ofi/layout/rendezvous_messages.hpp"
#include "fabric/ofi/proof.hpp"

namespace wherry::fabric::ofi {

inline constexpr std::string_view kConnectorRole = "wherry connector";
inline constexpr std::string_view kListenerRole = "wherry listener";
inline constexpr std::string_view kTokenRole = "wherry token";

/// Throws Error(EINVAL) if the introduction's data is too long.
std::unique_ptr<layout::Hello> make_hello(layout::Kind kind, std::uint64_t job, const Introduction& own);
/// `reason` beyond kMostReasonBytes is cut.
std::unique_ptr<layout::Hello> make_refusal(std::uint64_t job, std::string_view reason);

/// Proves the hello, and makes it a part of the transcript.
void prove(layout::Hello& hello, Transcript& transcript, std::string_view role);
/// Whether the hello is proved; if so, it becomes a part of the transcript.
bool is_proved(const layout::Hello& hello, Transcript& transcript, std::string_view role);

/// Whether the hello is of this protocol and job, and its lengths hold.
bool is_well_formed(const layout::Hello& hello, std::uint64_t job);
/// Of a well-formed hello.
Introduction introduction_of(const layout::Hello& hello);
std::string reason_of(const layout::Hello& hello);

}  // namespace wherry::fabric::ofi
