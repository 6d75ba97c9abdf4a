// SPDX-License-Identifier: Apache-2.0
#include "base/machine.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "base/config.hpp"
#include "base/found_once.hpp"
#include "base/namespaces.hpp"
#include "base/not_cancelled.hpp"
#include "base/unique_fd.hpp"

namespace wherry {
namespace {

constexpr std::uint64_t kFnvStart = 14695981039346656037U;
constexpr std::uint64_t kFnvPrime = 1099511628211U;

constexpr std::uint64_t add(std::uint64_t hash, std::uint8_t byte) { return (hash ^ byte) * kFnvPrime; }

constexpr std::uint64_t add_number(std::uint64_t hash, std::uint64_t number) {
  for (unsigned shift = 0; shift < 64; shift += 8) hash = add(hash, static_cast<std::uint8_t>(number >> shift));
  return hash;
}

BootId read_boot_id() {
  BootId boot{};
  const NotCancelled here;
  const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  const ssize_t bytes = file.valid() ? ::read(file.get(), text.data(), text.size()) : 0;
  // 32 digits with hyphens between them.
  std::size_t digits = 0;
  for (ssize_t i = 0; i < bytes && digits < 2 * boot.size(); ++i) {
    const char c = text[static_cast<std::size_t>(i)];
    const int value = c >= '0' && c <= '9' ? c - '0' : (c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1);
    if (value < 0) continue;
    std::uint8_t& byte = boot[digits++ / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | value);
  }
  return boot;
}

}  // namespace

std::uint64_t MachineId::hash(std::string_view more) const {
  std::uint64_t value = kFnvStart;
  for (const std::uint8_t byte : boot) value = add(value, byte);
  value = add_number(add_number(value, network), user);
  for (const char c : more) value = add(value, static_cast<std::uint8_t>(c));
  return value;
}

MachineId own_machine() { return {.boot = own_boot_id(), .network = namespace_number("net"), .user = ::geteuid()}; }

BootId own_boot_id() {
  static constinit FoundOnce<BootId> kernels;
  BootId boot = kernels.get(read_boot_id);
  const std::string pretended = config::text(config::Key::machine);
  std::uint64_t hash = kFnvStart;
  for (std::size_t i = 0; !pretended.empty() && i < boot.size(); ++i) {
    for (const char c : pretended) hash = add(hash, static_cast<std::uint8_t>(c));
    boot[i] ^= static_cast<std::uint8_t>(hash >> 32);
  }
  return boot;
}

bool is_own_kernel(const BootId& boot) { return boot != BootId{} && boot == own_boot_id(); }

}  // namespace wherry
