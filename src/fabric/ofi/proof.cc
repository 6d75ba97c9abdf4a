// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/proof.hpp"

namespace wherry::fabric::ofi {

// The same as crypto_auth, computed incrementally.
static_assert(crypto_auth_BYTES == layout::kProofBytes && crypto_auth_KEYBYTES == sizeof(Key));
static_assert(crypto_auth_hmacsha512256_BYTES == crypto_auth_BYTES);

Transcript::Transcript(const Key& key) {
  crypto_auth_hmacsha512256_init(&state_, reinterpret_cast<const unsigned char*>(key.data()), key.size());
}

void Transcript::add(std::span<const std::byte> said) {
  crypto_auth_hmacsha512256_update(&state_, reinterpret_cast<const unsigned char*>(said.data()), said.size());
}

Transcript::Proof Transcript::proof(std::string_view role) const {
  Transcript with_role = *this;
  with_role.add(std::as_bytes(std::span(role)));
  Proof proof{};
  crypto_auth_hmacsha512256_final(&with_role.state_, reinterpret_cast<unsigned char*>(proof.data()));
  return proof;
}

bool Transcript::proves(std::span<const std::uint8_t, layout::kProofBytes> proof, std::string_view role) const {
  const Proof right = this->proof(role);
  return sodium_memcmp(right.data(), proof.data(), right.size()) == 0;
}

void make_nonce(std::span<std::uint8_t, layout::kNonceBytes> nonce) { randombytes_buf(nonce.data(), nonce.size()); }

}  // namespace wherry::fabric::ofi
