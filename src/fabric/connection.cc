// SPDX-License-Identifier: Apache-2.0
#include "fabric/connection.hpp"

#include "fabric/check.hpp"

namespace wherry::fabric {

bool Connection::put_and_signal(std::uint64_t offset, std::span<const std::byte> source, std::uint64_t word,
                                std::uint64_t value, Bell bell) {
  if (!in_range(offset, source.size(), remote_bytes()) || !is_word(word, remote_bytes())) return false;
  while (!source.empty()) {
    const std::size_t taken = put(offset, source);
    if (taken == 0) return false;
    offset += taken;
    source = source.subspan(taken);
  }
  return signal(word, value, bell);
}

bool Connection::put_and_signal(std::uint64_t offset, std::span<const std::byte> first, std::uint64_t start,
                                std::span<const std::byte> second, std::uint64_t word, std::uint64_t value, Bell bell) {
  if (second.empty()) return put_and_signal(offset, first, word, value, bell);
  const std::size_t taken = put(offset, first);
  const auto rest = first.subspan(taken);
  if (!rest.empty() && !put_and_signal(offset + taken, rest, word, value - second.size(), bell)) return false;
  return put_and_signal(start, second, word, value, bell);
}

std::shared_ptr<std::byte[]> Connection::buffer(std::size_t bytes) {
  return std::make_shared_for_overwrite<std::byte[]>(bytes);
}

}  // namespace wherry::fabric
