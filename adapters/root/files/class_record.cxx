// SPDX-License-Identifier: Apache-2.0
#include "class_record.hpp"

#include <TKey.h>
#include <TList.h>

#include <cstdint>
#include <cstring>
#include <utility>

namespace wherry::root {

namespace {

// Offsets of numbers in a key. They are big-endian.
constexpr std::size_t kUnpackedAt = 6;
constexpr std::size_t kKeyBytesAt = 14;

std::uint32_t number(std::span<const char> bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

/// The key that TFile::WriteStreamerInfo makes, but from bytes instead of objects.
class RecordKey final : public TKey {
 public:
  RecordKey(std::string_view payload, Int_t unpacked, TDirectory& file)
      : TKey("StreamerInfo", TList().GetTitle(), TList::Class(), static_cast<Int_t>(payload.size()), &file) {
    fObjlen = unpacked;
    std::memcpy(TKey::GetBuffer(), payload.data(), payload.size());
  }
};

}  // namespace

void ClassRecord::keep(std::string classes, std::span<const char> record) {
  payload_.clear();
  if (record.size() < kKeyBytesAt + 2) return;
  const std::size_t key = number(record.subspan(kKeyBytesAt, 2));
  if (key >= record.size()) return;
  classes_ = std::move(classes);
  unpacked_ = static_cast<Int_t>(number(record.subspan(kUnpackedAt, 4)));
  payload_.assign(record.data() + key, record.size() - key);
}

Record ClassRecord::write(TDirectory& file) const {
  RecordKey key(payload_, unpacked_, file);
  key.WriteFile();
  return {key.GetSeekKey(), key.GetNbytes()};
}

}  // namespace wherry::root
