// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/proof.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace wherry::fabric::ofi {
namespace {

Transcript transcript_of(std::string_view said, std::byte key = std::byte{1}) {
  Key filled;
  filled.fill(key);
  Transcript transcript(filled);
  transcript.add(std::as_bytes(std::span(said)));
  return transcript;
}

bool proves(const Transcript& transcript, Transcript::Proof proof, std::string_view role) {
  std::array<std::uint8_t, layout::kProofBytes> bytes{};
  std::memcpy(bytes.data(), proof.data(), proof.size());
  return transcript.proves(bytes, role);
}

TEST(Proof, HoldsForTheSameKeyWordsAndRole) {
  const Transcript::Proof proof = transcript_of("hello").proof("a");
  EXPECT_TRUE(proves(transcript_of("hello"), proof, "a"));
  EXPECT_FALSE(proves(transcript_of("hello"), proof, "b")) << "or a token would be a proof that was sent";
  EXPECT_FALSE(proves(transcript_of("hullo"), proof, "a"));
  EXPECT_FALSE(proves(transcript_of("hello", std::byte{2}), proof, "a"));
  for (std::size_t bit = 0; bit < 8 * proof.size(); ++bit) {
    Transcript::Proof bent = proof;
    bent[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(proves(transcript_of("hello"), bent, "a"));
  }
}

TEST(Proof, OfWordsInPartsIsThatOfTheWhole) {
  Transcript parts = transcript_of("hel");
  (void)parts.proof("a");
  parts.add(std::as_bytes(std::span(std::string_view("lo"))));
  EXPECT_EQ(parts.proof("a"), transcript_of("hello").proof("a"));
}

}  // namespace
}  // namespace wherry::fabric::ofi
