// SPDX-License-Identifier: Apache-2.0
// The name of an endpoint, which MPI's processes exchange: fi_wherry://NODE:PORT/HOST/INCARNATION/VERSION. Every field
// has a fixed width, so the name is the same as a string (FI_ADDR_STR) and as an array of 64 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <wherry/address.hpp>

#include "adapters/mpi/layout/packet.hpp"

namespace wherry::mpi {

struct Name {
  std::uint16_t node = 0;
  std::uint16_t port = 0;
  std::uint64_t host = 0;         ///< hash of own_machine(); endpoints with another hash cannot be reached
  std::uint64_t incarnation = 0;  ///< random: another process may use the port again, but not the name

  bool operator==(const Name&) const = default;

  /// The name of the endpoint whose mailbox listens there, with a new incarnation.
  static Name of(const Address& listening);
  /// The name in a fi_info of an endpoint that is not open yet: this machine's, without a port.
  static Name unbound();
  /// Returns nothing if the text is no name, or one of another kPacketVersion.
  static std::optional<Name> parse(std::string_view text);
  /// Reads the name at the start of kNameBytes bytes.
  static std::optional<Name> parse_bytes(const void* bytes);

  /// Returns kNameBytes - 1 characters.
  [[nodiscard]] std::string text() const;
  /// Returns the text with its terminating zero.
  [[nodiscard]] std::array<char, kNameBytes> bytes() const;
  [[nodiscard]] Address address() const;
  [[nodiscard]] bool is_on_this_host() const;
  /// Whether this can name an endpoint of this machine that is not open yet, and will choose its port itself.
  [[nodiscard]] bool is_unbound() const { return port == 0 && is_on_this_host(); }
};

/// Hash of own_machine() at the first call.
std::uint64_t this_host();

}  // namespace wherry::mpi
