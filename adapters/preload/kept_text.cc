// SPDX-License-Identifier: Apache-2.0
#include "kept_text.hpp"

#include <limits.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace wherry::preload {
namespace {

WHERRY_START_DATA std::size_t used = 0;
constinit std::array<char, std::size_t{4} * PATH_MAX> texts{};

}  // namespace

char* keep_text(std::string_view text) noexcept {
  if (text.size() >= texts.size() - used) return nullptr;
  char* const copy = texts.data() + used;
  *std::copy(text.begin(), text.end(), copy) = '\0';
  used += text.size() + 1;
  return copy;
}

}  // namespace wherry::preload
