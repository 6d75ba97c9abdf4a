// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <cstddef>

namespace wherry {
namespace {

/// Returns the length in bytes of the UTF-8 character at the start of `text`, by Unicode's table of well-formed
/// sequences; 0 if there is none.
std::size_t character_length(std::string_view text) {
  const auto byte = [text](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte(index) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate_or_beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || surrogate_or_beyond ? 0 : length;
}

/// Whether the character is C0, DEL or C1 (U+0080 to U+009F). A single C1 character can begin an escape sequence.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

std::string escaped(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 0xf]};
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view next = text.substr(0, length == 0 ? 1 : length);
    if (length == 0 || is_control(next)) {
      for (const char c : next) result += escaped(static_cast<unsigned char>(c));
    } else {
      result += next;
    }
    text.remove_prefix(next.size());
  }
  return result;
}

}  // namespace wherry
