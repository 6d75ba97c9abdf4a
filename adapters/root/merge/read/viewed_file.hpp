// SPDX-License-Identifier: Apache-2.0
// A ROOT file that is read in place from memory, and whose bytes can be replaced by those of another file.
#pragma once

#include <TMemFile.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>

namespace wherry::merge {

class ViewedFile final : public TMemFile {
 public:
  explicit ViewedFile(std::span<const std::byte> bytes)
      // A short name: ROOT searches every name for the pattern of a zip archive, in time that grows with its length.
      : TMemFile("f", ZeroCopyView_t(reinterpret_cast<const char*>(bytes.data()), bytes.size())), bytes_(bytes) {}

  /// Replaces the bytes. Objects that were read before stay in memory, but their keys do not match the new bytes.
  void turn_to(std::span<const std::byte> bytes, Long64_t seek_info, Int_t info_bytes) {
    bytes_ = bytes;
    fEND = static_cast<Long64_t>(bytes.size());
    fSeekInfo = seek_info;
    fNbytesInfo = info_bytes;
  }

  [[nodiscard]] Long64_t GetSize() const override { return static_cast<Long64_t>(bytes_.size()); }

 protected:
  Int_t SysRead(Int_t /*fd*/, void* buffer, Int_t length) override {
    const auto rest = bytes_.subspan(std::min(position_, bytes_.size()));
    const std::size_t count = std::min(rest.size(), static_cast<std::size_t>(std::max(length, 0)));
    if (count > 0) std::memcpy(buffer, rest.data(), count);
    position_ += count;
    return static_cast<Int_t>(count);
  }
  Long64_t SysSeek(Int_t /*fd*/, Long64_t offset, Int_t whence) override {
    const Long64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? static_cast<Long64_t>(position_) : GetSize();
    if (from + offset < 0) {
      errno = EINVAL;
      return -1;
    }
    position_ = static_cast<std::size_t>(from + offset);
    return from + offset;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace wherry::merge
