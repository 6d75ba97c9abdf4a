// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/check/image_parts.hpp"

#include <algorithm>

namespace wherry::merge {

namespace {

constexpr std::int32_t kLargeFile = 1000000;  // from this version on, offsets in the header have 64 bits
constexpr std::uint16_t kLargeKey = 1000;     // above this version, offsets in a key or directory have 64 bits
constexpr std::uint64_t kHeaderBytes = 75;  // of a large file; that of a small one is shorter, and BEGIN is at least 64
// Objects larger than this after decompression are refused as decompression bombs.
constexpr std::uint32_t kLargestObject = std::uint32_t{1} << 30;

}  // namespace

void fault(std::uint64_t place, const std::string& what) { throw Fault{what + " at byte " + std::to_string(place)}; }

std::string_view Cursor::text() {
  std::uint64_t length = number<std::uint8_t>();
  if (length == 255) length = number<std::uint32_t>();
  const auto bytes = take(length);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Header read_header(std::span<const std::byte> image) {
  Header header;
  Cursor cursor(image, 0, std::min<std::uint64_t>(image.size(), kHeaderBytes));
  if (cursor.number<std::uint32_t>() != 0x726f6f74) fault(0, "no ROOT file: its first bytes are not 'root'");
  const auto version = cursor.number<std::int32_t>();
  const bool large = version >= kLargeFile;
  if (version < 30000 || version >= 2 * kLargeFile) fault(4, "an unknown version of ROOT");
  header.begin = cursor.number<std::uint32_t>();
  header.end = cursor.place(large);
  cursor.skip(large ? 16 : 12);  // the free space, which only writers need
  header.name_bytes = cursor.number<std::uint32_t>();
  cursor.skip(1);  // size of places
  header.compression = cursor.number<std::int32_t>();
  header.info_seek = cursor.place(large);
  header.info_bytes = cursor.number<std::uint32_t>();
  if (header.begin < 64 || header.begin > 4096) fault(8, "the first record is not where it should be");
  if (header.end > image.size()) {
    fault(12,
          "a file of " + std::to_string(header.end) + " bytes of which " + std::to_string(image.size()) + " are there");
  }
  if (header.end <= header.begin || header.name_bytes >= header.end - header.begin) {
    fault(12, "an invalid header");
  }
  return header;
}

Key read_key(Cursor& cursor) {
  Key key;
  key.at = cursor.at();
  key.bytes = cursor.number<std::int32_t>();
  const auto version = cursor.number<std::uint16_t>();
  key.object_bytes = cursor.number<std::uint32_t>();
  cursor.skip(4);  // time
  key.key_bytes = cursor.number<std::uint16_t>();
  cursor.skip(2);  // cycle
  key.seek = cursor.place(version > kLargeKey);
  cursor.place(version > kLargeKey);
  key.type = cursor.text();
  key.name = cursor.text();
  key.title = cursor.text();
  if (cursor.at() - key.at > key.key_bytes || key.bytes < key.key_bytes) fault(key.at, "a key with a wrong length");
  if (key.object_bytes > kLargestObject) fault(key.at, "an object that is too large");
  return key;
}

Directory read_directory(std::span<const std::byte> image, std::uint64_t at, std::uint64_t end) {
  Cursor cursor(image, at, end);
  const bool large = cursor.number<std::uint16_t>() > kLargeKey;
  cursor.skip(8);  // times
  Directory directory;
  directory.keys_bytes = cursor.number<std::uint32_t>();
  cursor.skip(4);
  cursor.place(large);
  cursor.place(large);
  directory.keys_seek = cursor.place(large);
  return directory;
}

}  // namespace wherry::merge
