// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/read_policy.hpp"

#include <algorithm>

namespace wherry::file::mapped {
namespace {

/// Samples three pages of a span: as a rule a file that was read before is in the page cache as a whole.
bool is_span_resident(const MappedFile& file, std::uint64_t offset) {
  const std::uint64_t end = std::min((offset / kSpan + 1) * kSpan, file.readable());
  if (offset >= end) return false;
  return file.is_resident(offset) && file.is_resident(offset + (end - offset) / 2) && file.is_resident(end - 1);
}

/// Whether to make a long read, or one out of order, in place. On a delegating mount the kernel's copy is never the
/// faster one if it has the pages, and a page fault takes longer than a read.
bool is_worth_it(const MappedFile& file, std::uint64_t offset, std::uint64_t bytes) {
  if (!file.needs_delegation()) return bytes <= kLongestCopy && was_touched(file.serial(), offset, bytes);
  if (!was_touched(file.serial(), offset, bytes)) return false;
  const bool is_end_resident = file.is_resident(offset + bytes - 1);
  return bytes <= kPart ? is_end_resident
                        : is_end_resident && file.is_resident(offset) && file.is_resident(offset + bytes / 2);
}

}  // namespace

bool ReadPolicy::in_place(const MappedFile& file, std::uint64_t offset, std::uint64_t bytes) noexcept {
  const bool in_order = offset == end || offset == 0;
  const bool is_long = bytes >= kLongRead;
  const std::uint64_t stretch = stretch_of(bytes);
  const std::uint64_t last = offset + bytes - 1;
  bool worth = false;
  if (offset == end && way != Way::look && last / stretch == (end - 1) / stretch) {
    // This reader touched the part a moment ago.
    worth = way == Way::in_place;
  } else if (is_long || !in_order) {
    worth = is_worth_it(file, offset, bytes);
  } else {
    worth = is_span_resident(file, last);
  }
  end = last + 1;
  way = !in_order ? Way::look : worth ? Way::in_place : Way::kernels;
  return worth;
}

}  // namespace wherry::file::mapped
