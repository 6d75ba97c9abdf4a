// SPDX-License-Identifier: Apache-2.0
// Proofs that a side holds the key (libsodium's crypto_auth), each over all that was said before. Both sides' nonces
// are part of it, so what was recorded proves nothing later.
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

/// What was said on one connection, both sides' in order. A copy goes on by itself.
class Transcript {
 public:
  using Proof = std::array<std::byte, layout::kProofBytes>;

  explicit Transcript(const Key& key);

  void add(std::span<const std::byte> said);
  /// The proof of a role, so that no side can send back the other's.
  [[nodiscard]] Proof proof(std::string_view role) const;
  /// Takes as long whatever is wrong.
  [[nodiscard]] bool proves(std::span<const std::uint8_t, layout::kProofBytes> proof, std::string_view role) const;

 private:
  crypto_auth_hmacsha512256_state state_;
};

/// Fills in random bytes that were never used before.
void make_nonce(std::span<std::uint8_t, layout::kNonceBytes> nonce);

}  // namespace wherry::fabric::ofi
