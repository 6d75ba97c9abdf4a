// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/hello.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include <wherry/error.hpp>

#include "base/printable.hpp"

namespace wherry::fabric::ofi {
namespace {

std::span<const std::byte> all_but_proof(const layout::Hello& hello) {
  return std::as_bytes(std::span(&hello, 1)).first(offsetof(layout::Hello, proof));
}

}  // namespace

std::unique_ptr<layout::Hello> make_hello(layout::Kind kind, std::uint64_t job, const Introduction& own) {
  if (own.data.size() > Introduction::kMostData) {
    throw Error(EINVAL, "introduce", std::to_string(own.data.size()) + " bytes of data",
                "at most " + std::to_string(Introduction::kMostData) + " fit");
  }
  auto hello = std::make_unique<layout::Hello>();
  hello->version = layout::kRendezvousVersion;
  hello->magic = layout::kRendezvousMagic;
  hello->kind = static_cast<std::uint32_t>(kind);
  hello->node = own.node;
  hello->port = own.port;
  hello->job = job;
  hello->segment_bytes = own.segment_bytes;
  hello->data_bytes = static_cast<std::uint32_t>(own.data.size());
  static_assert(sizeof hello->greeting == sizeof own.greeting);
  std::memcpy(hello->greeting, own.greeting.data(), own.greeting.size());
  if (!own.data.empty()) std::memcpy(hello->data, own.data.data(), own.data.size());
  return hello;
}

std::unique_ptr<layout::Hello> make_refusal(std::uint64_t job, std::string_view reason) {
  auto hello = make_hello(layout::Kind::refusal, job, {});
  reason = reason.substr(0, layout::kMostReasonBytes);
  hello->reason_bytes = static_cast<std::uint32_t>(reason.size());
  std::ranges::copy(reason, hello->reason);
  return hello;
}

void prove(layout::Hello& hello, Transcript& transcript, std::string_view role) {
  transcript.add(all_but_proof(hello));
  const Transcript::Proof proof = transcript.proof(role);
  std::memcpy(hello.proof, proof.data(), proof.size());
}

bool is_proved(const layout::Hello& hello, Transcript& transcript, std::string_view role) {
  Transcript with_hello = transcript;
  with_hello.add(all_but_proof(hello));
  if (!with_hello.proves(std::span(hello.proof), role)) return false;
  transcript = with_hello;
  return true;
}

bool is_well_formed(const layout::Hello& hello, std::uint64_t job) {
  return hello.version == layout::kRendezvousVersion && hello.magic == layout::kRendezvousMagic && hello.job == job &&
         hello.data_bytes <= layout::kMostDataBytes && hello.reason_bytes <= layout::kMostReasonBytes;
}

Introduction introduction_of(const layout::Hello& hello) {
  Introduction peer{
      .node = hello.node, .port = hello.port, .segment_bytes = hello.segment_bytes, .greeting = {}, .data = {}};
  std::memcpy(peer.greeting.data(), hello.greeting, peer.greeting.size());
  const auto data = std::as_bytes(std::span(hello.data)).first(hello.data_bytes);
  peer.data.assign(data.begin(), data.end());
  return peer;
}

std::string reason_of(const layout::Hello& hello) {
  return printable({reinterpret_cast<const char*>(hello.reason), hello.reason_bytes});
}

}  // namespace wherry::fabric::ofi
