// SPDX-License-Identifier: Apache-2.0
// Huge pages for shared memory that is about to be filled. May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::memory {

/// Where a page is this large, huge pages are used; elsewhere none are.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Maps part of a file where its huge pages are huge pages of the mapping. Null, and errno: that is not possible.
/// @param place  in the file: a multiple of kHugePage
std::byte* map_for_huge_pages(int file, std::uint64_t place, std::size_t bytes, int protection, int flags);

/// Puts huge pages behind the whole ones of a part of a shared memory file that holds nothing yet. To fill it then
/// takes half as long (0.5 ms instead of 1 for 2 MiB), and a fault on any mapping of it maps more at once.
/// @param view  a mapping of it, from `place` in the file on; huge pages of the file are huge pages of the view
/// Returns what has huge pages now: empty where the kernel has none to give, or does not let it.
std::span<std::byte> bring_in_huge_pages(int file, std::uint64_t place, std::span<std::byte> view);

/// Puts huge pages behind memory that may be in use meanwhile. Pages of it that are there already keep their content.
/// Takes 80 us each, up to a few milliseconds where the kernel has to look for them. One that took more than 1 ms of
/// CPU time or 10 ms by the clock was the last: small ones are faster there.
/// @param memory  whole ones
/// Returns the bytes that have them now, from the first on. The others, all where none are tried, are as usable as
/// before.
std::size_t collapse_into_huge_pages(std::span<std::byte> memory);

/// False from some moment on: the kernel does not let it, or one took too long.
bool huge_pages_are_tried();

}  // namespace wherry::memory
