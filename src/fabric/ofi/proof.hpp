// SPDX-License-Identifier: Apache-2.0
// Proofs that a side holds the key (libsodium's crypto_auth). Each proof covers all messages sent before. These include
// the nonces of both sides, so a recorded proof is useless later.
#pragma once

#include <sodium.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/key_file.hpp"
#include "fabric/ofi/layout/rendezvous_messages.hpp"

namespace wherry::fabric::ofi {

/// All messages of one connection, of both sides, in order. A copy is independent of the original.
class Transcript {
 public:
  using Proof = std::array<std::byte, layout::kProofBytes>;

  explicit Transcript(const Key& key);

  void add(std::span<const std::byte> said);
  /// Returns the proof for a role. Roles differ, so that no side can send the other's proof back.
  [[nodiscard]] Proof proof(std::string_view role) const;
  /// Returns whether a proof is correct. Takes constant time.
  [[nodiscard]] bool proves(std::span<const std::uint8_t, layout::kProofBytes> proof, std::string_view role) const;

 private:
  crypto_auth_hmacsha512256_state state_;
};

/// Fills a nonce with random bytes.
void make_nonce(std::span<std::uint8_t, layout::kNonceBytes> nonce);

}  // namespace wherry::fabric::ofi
