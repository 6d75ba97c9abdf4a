// SPDX-License-Identifier: Apache-2.0
#include "name.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <random>

#include "adapters/mpi/layout/packet.hpp"
#include "base/config.hpp"
#include "base/found_once.hpp"
#include "base/machine.hpp"

namespace wherry::mpi {
namespace {

constexpr const char* kFormat = "fi_wherry://%05" PRIu16 ":%05" PRIu16 "/%016" PRIx64 "/%016" PRIx64 "/%05" PRIu32;
constexpr const char* kScan = "fi_wherry://%5" SCNu16 ":%5" SCNu16 "/%16" SCNx64 "/%16" SCNx64 "/%5" SCNu32;

std::uint64_t random_number() {
  std::random_device source;
  return std::uint64_t{source()} << 32 | source();
}

}  // namespace

std::uint64_t this_host() {
  static constinit FoundOnce<std::uint64_t> value;
  return value.get([] { return own_machine().hash(); });
}

Name Name::of(const Address& listening) {
  return {listening.node.value_or(0), listening.port.value_or(0), this_host(), random_number()};
}

Name Name::unbound() { return {static_cast<std::uint16_t>(config::number(config::Key::node)), 0, this_host(), 0}; }

std::string Name::text() const { return bytes().data(); }

std::array<char, kNameBytes> Name::bytes() const {
  std::array<char, kNameBytes> result{};
  std::snprintf(result.data(), result.size(), kFormat, node, port, host, incarnation, kPacketVersion);
  return result;
}

std::optional<Name> Name::parse(std::string_view text) {
  Name name;
  std::uint32_t version = 0;
  const std::string copy(text);
  const int fields = std::sscanf(copy.c_str(), kScan, &name.node, &name.port, &name.host, &name.incarnation, &version);
  if (fields != 5 || version != kPacketVersion || name.text() != copy) return std::nullopt;
  return name;
}

std::optional<Name> Name::parse_bytes(const void* bytes) {
  const auto* text = static_cast<const char*>(bytes);
  return parse({text, strnlen(text, kNameBytes)});
}

Address Name::address() const {
  Address result;
  result.fabric = "shm";
  result.node = node;
  result.port = port;
  return result;
}

bool Name::is_on_this_host() const { return host == this_host(); }

}  // namespace wherry::mpi
