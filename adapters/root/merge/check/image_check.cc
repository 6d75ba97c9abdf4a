// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/check/image_check.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "adapters/root/merge/check/image_parts.hpp"

namespace wherry::merge {

namespace {

constexpr std::size_t kBlockHeader = 9;
constexpr int kDeepest = 64;

class Check {
 public:
  explicit Check(std::span<const std::byte> image) : image_(image) {}

  void run() {
    header_ = read_header(image_);
    walk_records();
    check_streamer_infos();
    check_directory(read_directory(image_, header_.top(), header_.end), 0);
  }

 private:
  // Every byte from the first record to the end belongs to a record or to a gap.
  void walk_records() {
    std::uint64_t at = header_.begin;
    while (at < header_.end) {
      Cursor cursor(image_, at, header_.end);
      const auto bytes = cursor.number<std::int32_t>();
      const std::uint64_t length = bytes < 0 ? -static_cast<std::int64_t>(bytes) : bytes;
      if (length < 4 || length > header_.end - at) fault(at, "a record with a wrong length");
      if (bytes > 0) check_record(at, length);
      at += length;
    }
  }

  void check_record(std::uint64_t at, std::uint64_t length) {
    Cursor cursor(image_, at, at + length);
    const Key key = read_key(cursor);
    if (key.seek != at) fault(at, "a record that gives another place as its own");
    records_.push_back(at);
    const std::uint64_t stored = length - key.key_bytes;
    // Pages of an RNTuple: their lengths and checksums are in the RNTuple's own description.
    if (key.type == "RBlob") return;
    // ROOT would write the excess bytes beyond the memory that it has allocated for the object.
    if (key.object_bytes < stored) fault(at, "a record that is longer than its object");
    if (key.object_bytes > stored) check_blocks(at + key.key_bytes, stored, key.object_bytes);
  }

  void check_blocks(std::uint64_t at, std::uint64_t stored, std::uint64_t unpacked) {
    static constexpr std::string_view kAlgorithms[] = {"ZL", "CS", "XZ", "L4", "ZS"};
    Cursor cursor(image_, at, at + stored);
    std::uint64_t total = 0;
    while (cursor.at() < at + stored) {
      const std::uint64_t block = cursor.at();
      std::array<std::uint8_t, kBlockHeader> header{};
      for (std::uint8_t& byte : header) byte = cursor.number<std::uint8_t>();
      const std::string_view algorithm(reinterpret_cast<const char*>(header.data()), 2);
      if (std::find(std::begin(kAlgorithms), std::end(kAlgorithms), algorithm) == std::end(kAlgorithms)) {
        fault(block, "a block of an unknown compression");
      }
      const auto little = [&](std::size_t i) {
        return std::uint32_t{header[i]} | std::uint32_t{header[i + 1]} << 8 | std::uint32_t{header[i + 2]} << 16;
      };
      cursor.skip(little(3));
      total += little(6);
    }
    if (total != unpacked) fault(at, "compressed blocks that do not make up the object");
  }

  [[nodiscard]] bool is_record(std::uint64_t at) const {
    return std::binary_search(records_.begin(), records_.end(), at);
  }

  Key record_at(std::uint64_t at, std::uint64_t bytes, const char* what) {
    if (!is_record(at)) fault(at, std::string("no record where ") + what + " should be");
    Cursor cursor(image_, at, header_.end);
    const Key key = read_key(cursor);
    if (static_cast<std::uint64_t>(key.bytes) != bytes) fault(at, std::string(what) + " of another length");
    return key;
  }

  void check_streamer_infos() {
    if (header_.info_seek == 0 && header_.info_bytes == 0) return;
    const Key key = record_at(header_.info_seek, header_.info_bytes, "the description of the classes");
    if (key.type != "TList") fault(key.at, "a description of the classes of a wrong type");
  }

  void check_directory(const Directory& directory, int depth) {
    if (depth > kDeepest) fault(directory.keys_seek, "directories that are too deep");
    if (directory.keys_seek == 0 && directory.keys_bytes == 0 && depth > 0) return;
    if (!lists_.insert(directory.keys_seek).second) fault(directory.keys_seek, "a directory that contains itself");
    const Key list = record_at(directory.keys_seek, directory.keys_bytes, "a list of keys");
    const std::uint64_t end = list.at + static_cast<std::uint64_t>(list.bytes);
    Cursor cursor(image_, list.at + list.key_bytes, end);
    const auto count = cursor.number<std::uint32_t>();
    for (std::uint32_t i = 0; i < count; ++i) check_entry(cursor, depth);
  }

  void check_entry(Cursor& cursor, int depth) {
    const Key entry = read_key(cursor);
    if (cursor.at() - entry.at != entry.key_bytes) fault(entry.at, "a key with a wrong length");
    const Key record = record_at(entry.seek, static_cast<std::uint64_t>(entry.bytes), "an object");
    if (record.type != entry.type || record.object_bytes != entry.object_bytes || record.key_bytes != entry.key_bytes) {
      fault(entry.at, "a key that does not fit its object");
    }
    if (entry.type == "TDirectory" || entry.type == "TDirectoryFile") {
      const std::uint64_t end = record.at + static_cast<std::uint64_t>(record.bytes);
      if (record.object_bytes != end - record.at - record.key_bytes) fault(record.at, "a directory that is compressed");
      check_directory(read_directory(image_, record.at + record.key_bytes, end), depth + 1);
    }
  }

  std::span<const std::byte> image_;
  Header header_;
  std::vector<std::uint64_t> records_;  // offsets of the records, increasing
  std::set<std::uint64_t> lists_;       // offsets of the key lists visited
};

}  // namespace

std::string fault_in_image(std::span<const std::byte> image) {
  try {
    Check(image).run();
    return {};
  } catch (const Fault& found) {
    return found.what();
  }
}

}  // namespace wherry::merge
