// SPDX-License-Identifier: Apache-2.0
// A worker's file, of whatever bytes, is looked at without a read outside it and without an exception.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "adapters/root/merge/check/image_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A block of its own size: the sanitizer sees one byte too many.
  const std::vector<std::uint8_t> image(data, data + size);
  const std::string fault = wherry::merge::fault_in_image(std::as_bytes(std::span(image)));
  // What is sound stays sound with something behind it.
  if (fault.empty()) {
    std::vector<std::uint8_t> longer = image;
    longer.push_back(0);
    if (!wherry::merge::fault_in_image(std::as_bytes(std::span(longer))).empty()) __builtin_trap();
  }
  return 0;
}
