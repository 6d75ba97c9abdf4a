// SPDX-License-Identifier: Apache-2.0
// Parses the parts of a ROOT file from its bytes, without ROOT. Throws Fault for invalid values, and for anything that
// lies outside the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace wherry::merge {

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fault(std::uint64_t place, const std::string& what);

/// Reads successive big-endian numbers from a range of the file. Throws Fault at its end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> image, std::uint64_t at, std::uint64_t end) : image_(image), at_(at), end_(end) {
    if (end > image.size() || at > end) fault(at, "something lies outside the file");
  }
  [[nodiscard]] std::uint64_t at() const { return at_; }

  template <typename Number>
  Number number() {
    const auto bytes = take(sizeof(Number));
    std::uint64_t value = 0;
    for (const std::byte byte : bytes) value = value << 8 | static_cast<std::uint64_t>(byte);
    return static_cast<Number>(value);
  }
  std::uint64_t place(bool large) { return large ? number<std::uint64_t>() : number<std::uint32_t>(); }
  std::string_view text();
  void skip(std::uint64_t count) { take(count); }
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > end_ - at_) fault(at_, "something is cut off");
    at_ += count;
    return image_.subspan(at_ - count, count);
  }

 private:
  std::span<const std::byte> image_;
  std::uint64_t at_;
  std::uint64_t end_;
};

struct Header {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t name_bytes = 0;
  std::int32_t compression = 0;
  std::uint64_t info_seek = 0;
  std::uint64_t info_bytes = 0;
  /// Returns the offset of the top directory.
  [[nodiscard]] std::uint64_t top() const { return begin + name_bytes; }
};
Header read_header(std::span<const std::byte> image);

/// The key of a record, and of an entry in a list of keys.
struct Key {
  std::uint64_t at = 0;
  std::int32_t bytes = 0;
  std::uint32_t object_bytes = 0;
  std::uint16_t key_bytes = 0;
  std::uint64_t seek = 0;
  std::string_view type;
  std::string_view name;
  std::string_view title;
};
Key read_key(Cursor& cursor);

struct Directory {
  std::uint64_t keys_seek = 0;
  std::uint64_t keys_bytes = 0;
};
Directory read_directory(std::span<const std::byte> image, std::uint64_t at, std::uint64_t end);

}  // namespace wherry::merge
