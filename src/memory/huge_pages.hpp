// SPDX-License-Identifier: Apache-2.0
// Huge pages for shared memory that is about to be filled. May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::memory {

/// The size of a huge page. On machines where it differs, none are used.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Maps part of a file at an address where its huge pages are also huge pages of the mapping. Null, and errno: it
/// failed.
/// @param place  offset in the file: a multiple of kHugePage
std::byte* map_for_huge_pages(int file, std::uint64_t place, std::size_t bytes, int protection, int flags);

/// Allocates the whole huge pages of an empty part of a shared memory file. Filling it then takes half as long (0.5 ms
/// instead of 1 for 2 MiB), and a page fault on any mapping of it maps more at once.
/// @param view  a mapping of the file from `place` on, as by map_for_huge_pages
/// Returns the part of the view that has huge pages now. Empty: the kernel has none, or refuses.
std::span<std::byte> bring_in_huge_pages(int file, std::uint64_t place, std::span<std::byte> view);

/// Collapses the pages of memory into huge pages, also while it is in use. It keeps its content. A huge page takes 80
/// us, or a few milliseconds if the kernel has to search for memory. After one took more than 1 ms of CPU time or 10 ms
/// by the clock, no more are tried: small pages are faster there.
/// @param memory  whole huge pages
/// Returns how many bytes have huge pages now, from the first on. The rest stays usable as it was.
std::size_t collapse_into_huge_pages(std::span<std::byte> memory);

/// Whether huge pages are still tried. False for good once the kernel has refused, or one took too long.
bool huge_pages_are_tried();

}  // namespace wherry::memory
