// SPDX-License-Identifier: Apache-2.0
// Writes, proves and parses the hellos of the rendezvous. Does not trust the bytes of a peer.
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

/// Makes a hello without a proof. Throws Error(EINVAL) if the introduction's data is too long.
std::unique_ptr<layout::Hello> make_hello(layout::Kind kind, std::uint64_t job, const Introduction& own);
/// Makes a refusal without a proof. Cuts `reason` after kMostReasonBytes.
std::unique_ptr<layout::Hello> make_refusal(std::uint64_t job, std::string_view reason);

/// Adds the hello to the transcript, and the proof to the hello.
void prove(layout::Hello& hello, Transcript& transcript, std::string_view role);
/// Returns whether the hello's proof is correct. If so, adds the hello to the transcript.
bool is_proved(const layout::Hello& hello, Transcript& transcript, std::string_view role);

/// Returns whether the hello is of this protocol, version and job, and its lengths are valid.
bool is_well_formed(const layout::Hello& hello, std::uint64_t job);
/// Return the parts of a hello, which must be well-formed.
Introduction introduction_of(const layout::Hello& hello);
std::string reason_of(const layout::Hello& hello);

}  // namespace wherry::fabric::ofi
