// SPDX-License-Identifier: Apache-2.0
// Files that ROOT wrote: valid ones, and ones that are damaged at every place that ROOT would follow.
#include "adapters/root/merge/check/image_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

namespace wherry::merge {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Of a file below 2 GB, as in TFile::WriteHeader.
constexpr std::size_t kEndAt = 12;
constexpr std::size_t kNameBytesAt = 28;
constexpr std::size_t kInfoSeekAt = 37;
constexpr std::size_t kBegin = 100;
// Of a directory's record and of a key.
constexpr std::size_t kKeysBytesInDirectory = 10;
constexpr std::size_t kKeysSeekInDirectory = 26;
constexpr std::size_t kObjectBytesInKey = 6;
constexpr std::size_t kKeyBytesInKey = 14;
constexpr std::size_t kSeekInKey = 18;

class Image {
 public:
  explicit Image(const std::string& name) {
    std::ifstream file(std::string(WHERRY_SOURCE) + "/tests/fuzz/corpus/root_image_fuzz/" + name, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }
  [[nodiscard]] std::string fault() const { return fault_in_image(std::as_bytes(std::span(bytes_))); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  void cut(std::size_t size) { bytes_.resize(size); }

  [[nodiscard]] std::uint32_t get(std::size_t at) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes_[at + i]);
    return value;
  }
  void set(std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) bytes_[at + i] = static_cast<char>(value >> (24 - 8 * i));
  }
  void set_byte(std::size_t at, char value) { bytes_[at] = value; }
  [[nodiscard]] std::size_t key_bytes(std::size_t key) const { return get(key + kKeyBytesInKey) >> 16; }

  [[nodiscard]] std::size_t top_directory() const { return kBegin + get(kNameBytesAt); }
  [[nodiscard]] std::size_t key_list() const { return get(top_directory() + kKeysSeekInDirectory); }
  [[nodiscard]] std::size_t first_entry() const { return key_list() + key_bytes(key_list()) + 4; }

 private:
  std::string bytes_;
};

TEST(ImageCheck, WhatRootWroteIsSound) {
  for (const char* name : {"tree.root", "plain.root", "ntuple.root"})
    EXPECT_THAT(Image(name).fault(), IsEmpty()) << name;
}

TEST(ImageCheck, EveryTruncationIsFound) {
  Image image("tree.root");
  while (image.size() > 0) {
    image.cut(image.size() - 1);
    ASSERT_THAT(image.fault(), Not(IsEmpty())) << image.size();
  }
}

TEST(ImageCheck, WhatFollowsTheEndIsNobodysBusiness) {
  Image image("tree.root");
  image.cut(image.size() + 1000);
  EXPECT_THAT(image.fault(), IsEmpty());
}

TEST(ImageCheck, SomethingElseIsNoRootFile) {
  Image image("tree.root");
  image.set_byte(0, 'R');
  EXPECT_THAT(image.fault(), HasSubstr("no ROOT file"));
}

// Each of these words is an offset that ROOT follows, or a length that it reads.
struct Broken {
  const char* name;
  const char* file;
  std::size_t (*word)(const Image&);
  std::uint32_t (*value)(std::uint32_t);
};

std::uint32_t one_more(std::uint32_t value) { return value + 1; }
std::uint32_t one_less(std::uint32_t value) { return value - 1; }
std::uint32_t none(std::uint32_t /*value*/) { return 0; }
std::uint32_t negative(std::uint32_t value) { return ~value + 1; }
std::uint32_t huge(std::uint32_t /*value*/) { return 0x7fffffff; }

constexpr Broken kBroken[] = {
    {"the end", "tree.root", [](const Image&) { return kEndAt; }, one_more},
    {"the end, less", "tree.root", [](const Image&) { return kEndAt; }, one_less},
    {"the end, none", "tree.root", [](const Image&) { return kEndAt; }, none},
    {"the name", "tree.root", [](const Image&) { return kNameBytesAt; }, huge},
    {"the name, negative", "tree.root", [](const Image&) { return kNameBytesAt; }, negative},
    {"streamer infos", "tree.root", [](const Image&) { return kInfoSeekAt; }, one_more},
    {"streamer infos, length", "tree.root", [](const Image&) { return kInfoSeekAt + 4; }, huge},
    {"key list", "tree.root", [](const Image& i) { return i.top_directory() + kKeysSeekInDirectory; }, one_more},
    {"key list, none", "tree.root", [](const Image& i) { return i.top_directory() + kKeysSeekInDirectory; }, none},
    {"key list, length", "tree.root", [](const Image& i) { return i.top_directory() + kKeysBytesInDirectory; }, huge},
    {"number of keys", "tree.root", [](const Image& i) { return i.first_entry() - 4; }, huge},
    {"entry, length", "tree.root", [](const Image& i) { return i.first_entry(); }, one_less},
    {"entry, object", "tree.root", [](const Image& i) { return i.first_entry() + kObjectBytesInKey; }, one_more},
    {"entry, place", "tree.root", [](const Image& i) { return i.first_entry() + kSeekInKey; }, one_more},
    {"entry, place, huge", "tree.root", [](const Image& i) { return i.first_entry() + kSeekInKey; }, huge},
    {"record, length", "tree.root", [](const Image&) { return kBegin; }, one_more},
    {"record, none", "tree.root", [](const Image&) { return kBegin; }, none},
    {"record, gap of all", "tree.root", [](const Image&) { return kBegin; }, [](std::uint32_t) { return 0x80000000; }},
    {"record, object", "tree.root", [](const Image& i) { return i.get(kInfoSeekAt) + kObjectBytesInKey; }, one_more},
    {"record, object, huge", "plain.root", [](const Image& i) { return i.get(kInfoSeekAt) + kObjectBytesInKey; }, huge},
    {"record, object, less", "plain.root", [](const Image& i) { return i.get(kInfoSeekAt) + kObjectBytesInKey; },
     one_less},
    {"record, place", "tree.root", [](const Image& i) { return i.get(kInfoSeekAt) + kSeekInKey; }, one_more},
};

TEST(ImageCheck, EveryWordThatLeadsAstrayIsFound) {
  for (const Broken& broken : kBroken) {
    Image image(broken.file);
    const std::size_t at = broken.word(image);
    ASSERT_LT(at + 4, image.size()) << broken.name;
    image.set(at, broken.value(image.get(at)));
    EXPECT_THAT(image.fault(), Not(IsEmpty())) << broken.name;
  }
}

TEST(ImageCheck, CompressedBlocksMustMakeUpTheObject) {
  const Image sound("tree.root");
  const std::size_t block = sound.get(kInfoSeekAt) + sound.key_bytes(sound.get(kInfoSeekAt));
  for (std::size_t byte = 0; byte < 9; ++byte) {
    if (byte == 2) continue;  // a detail of the algorithm's
    Image image("tree.root");
    image.set_byte(block + byte, '\x77');
    EXPECT_THAT(image.fault(), Not(IsEmpty())) << byte;
  }
}

TEST(ImageCheck, ADirectoryThatContainsItselfIsFound) {
  Image image("plain.root");
  // The first entry is a directory; its key list is made that of the top.
  const std::size_t top = image.key_list();
  const std::size_t record = image.get(image.first_entry() + kSeekInKey);
  const std::size_t directory = record + image.key_bytes(record);
  image.set(directory + kKeysBytesInDirectory, image.get(top));
  image.set(directory + kKeysSeekInDirectory, static_cast<std::uint32_t>(top));
  EXPECT_THAT(image.fault(), HasSubstr("contains itself"));
}

// ROOT would unpack it, and follow other numbers than those that are looked at here.
TEST(ImageCheck, ADirectoryIsNotCompressed) {
  Image image("plain.root");
  const std::size_t entry = image.first_entry();
  const std::size_t record = image.get(entry + kSeekInKey);
  const std::size_t directory = record + image.key_bytes(record);
  const std::uint32_t stored = image.get(record + kObjectBytesInKey);
  const std::uint32_t keys = image.get(directory + kKeysSeekInDirectory);
  for (const std::size_t key : {entry, record}) image.set(key + kObjectBytesInKey, stored + 1);
  // The header of a block is one of a directory with large numbers, too, with the key list where it was.
  const char header[] = {'Z', 'L', 8, static_cast<char>(stored - 9), 0, 0, static_cast<char>(stored + 1), 0, 0};
  for (std::size_t i = 0; i < sizeof header; ++i) image.set_byte(directory + i, header[i]);
  image.set(directory + kKeysSeekInDirectory + 8, 0);
  image.set(directory + kKeysSeekInDirectory + 12, keys);
  EXPECT_THAT(image.fault(), HasSubstr("compressed"));
}

}  // namespace
}  // namespace wherry::merge
