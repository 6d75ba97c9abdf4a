// SPDX-License-Identifier: Apache-2.0
// The messages of the rendezvous between hosts (fabric/ofi/rendezvous.hpp). Little-endian. `version` and `magic` keep
// their places in all versions, so that two versions can recognize each other.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::fabric::ofi::layout {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::uint32_t kRendezvousVersion = 1;
inline constexpr std::uint32_t kRendezvousMagic = 0x494e4857;  // "WHNI" in memory
inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kMostDataBytes = 1024;
inline constexpr std::size_t kMostReasonBytes = 255;
/// A hello has the size of the largest frame in use, so that a path that drops large packets is detected here.
inline constexpr std::size_t kHelloBytes = 9000;

/// "Are you (job, node, port)?"
struct Question {
  std::uint32_t version;
  std::uint32_t magic;
  std::uint64_t job;  // fabric/ofi/ports.hpp:job_number
  std::uint16_t node;
  std::uint16_t port;
  std::uint32_t zero;
  std::uint8_t nonce[kNonceBytes];
};

enum class Verdict : std::uint32_t {
  yes = 1,
  no = 2,       // this process listens at another address
  full = 3,     // too many connectors wait to be accepted
  version = 4,  // the question has another version
};

struct Answer {
  std::uint32_t version;
  std::uint32_t magic;
  std::uint32_t verdict;  // Verdict
  std::uint32_t zero;
  std::uint8_t nonce[kNonceBytes];
};

enum class Kind : std::uint32_t {
  hello = 1,
  receipt = 2,    // from the listener's fabric: the hello has arrived and its proof is correct
  refusal = 3,    // from the listener's program: `reason` has the cause
  wrong_key = 4,  // from the listener's fabric, which cannot prove anything to this connector
};

/// The hello of the connector or of the listener, or the listener's receipt or refusal.
struct Hello {
  std::uint32_t version;
  std::uint32_t magic;
  std::uint32_t kind;  // Kind
  std::uint16_t node;
  std::uint16_t port;           // 0: a connector
  std::uint64_t job;            // as in the question
  std::uint64_t segment_bytes;  // of the sender
  std::uint32_t data_bytes;     // at most kMostDataBytes
  std::uint32_t reason_bytes;   // at most kMostReasonBytes
  std::uint8_t greeting[64];
  std::uint8_t data[kMostDataBytes];
  std::uint8_t reason[kMostReasonBytes + 1];
  std::uint8_t padding[7584];       // zero
  std::uint8_t proof[kProofBytes];  // over all messages before, and this one up to here
};

static_assert(sizeof(Question) == 56 && std::is_trivially_copyable_v<Question>);
static_assert(sizeof(Answer) == 48 && std::is_trivially_copyable_v<Answer>);
static_assert(sizeof(Hello) == kHelloBytes && std::is_trivially_copyable_v<Hello>);
static_assert(offsetof(Question, version) == 0 && offsetof(Question, magic) == 4 && offsetof(Question, job) == 8 &&
              offsetof(Question, node) == 16 && offsetof(Question, port) == 18 && offsetof(Question, nonce) == 24);
static_assert(offsetof(Answer, version) == 0 && offsetof(Answer, magic) == 4 && offsetof(Answer, verdict) == 8 &&
              offsetof(Answer, nonce) == 16);
static_assert(offsetof(Hello, version) == 0 && offsetof(Hello, magic) == 4 && offsetof(Hello, kind) == 8 &&
              offsetof(Hello, node) == 12 && offsetof(Hello, port) == 14 && offsetof(Hello, job) == 16 &&
              offsetof(Hello, segment_bytes) == 24 && offsetof(Hello, data_bytes) == 32 &&
              offsetof(Hello, reason_bytes) == 36 && offsetof(Hello, greeting) == 40 && offsetof(Hello, data) == 104 &&
              offsetof(Hello, reason) == 1128 && offsetof(Hello, proof) == kHelloBytes - kProofBytes);

}  // namespace wherry::fabric::ofi::layout
