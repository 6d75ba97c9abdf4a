// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace wherry::file {

/// Whether the file has these bytes at `offset`. The descriptor may be write-only.
bool holds(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes);

/// How much of an append is in the file, if it may have been made in part or not at all.
/// @param end  the file's end before the append. Nothing: the file has other data there, or more than the append.
std::optional<std::size_t> already_appended(int descriptor, std::uint64_t end, std::span<const std::byte> data);

}  // namespace wherry::file
