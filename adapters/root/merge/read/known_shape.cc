// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/read/known_shape.hpp"

#include <RZip.h>
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "adapters/root/merge/check/image_parts.hpp"
#include "adapters/root/merge/read/branches.hpp"
#include "adapters/root/merge/read/root_errors.hpp"

namespace wherry::merge {

namespace {

// Shapes per output. There are several if several programs write, or if the trees have different numbers of baskets.
constexpr std::size_t kMostShapes = 8;
// No shape is learned of a larger header: with that many baskets, the time to read it does not matter.
constexpr std::uint32_t kLargestHeader = std::uint32_t{16} << 20;
constexpr std::uint32_t kMostTrees = 1000;
// Limits on learning, for files that all differ: 8 attempts, and one more per 16 matches.
constexpr std::size_t kFirstAttempts = 8;
constexpr std::size_t kHitsPerAttempt = 16;

std::span<const std::byte> content_of(std::span<const std::byte> image, std::uint64_t at, std::uint64_t bytes) {
  Cursor cursor(image, at, image.size());
  const Key key = read_key(cursor);
  if (static_cast<std::uint64_t>(key.bytes) != bytes) fault(at, "a record of another length");
  Cursor record(image, at, at + bytes);
  record.skip(key.key_bytes);
  return record.take(bytes - key.key_bytes);
}

/// Returns a decompressed copy of the object in a record. Throws Fault.
std::vector<std::byte> unpacked(std::span<const std::byte> stored, std::uint32_t bytes) {
  if (stored.size() > bytes) fault(0, "a record that is longer than its object");
  std::vector<std::byte> packed(stored.begin(), stored.end());
  if (packed.size() == bytes) return packed;
  std::vector<std::byte> object(bytes);
  std::size_t from = 0;
  std::size_t to = 0;
  while (to < object.size()) {
    auto* block = reinterpret_cast<unsigned char*>(packed.data()) + from;
    int in = 0;
    int out = 0;
    int got = 0;
    constexpr std::size_t kBlockHeader = 9;
    if (packed.size() - from < kBlockHeader || R__unzip_header(&in, block, &out) != 0) fault(from, "a broken block");
    if (in <= 0 || out <= 0 || static_cast<std::size_t>(in) > packed.size() - from ||
        static_cast<std::size_t>(out) > object.size() - to) {
      fault(from, "a broken block");
    }
    R__unzip(&in, block, &out, reinterpret_cast<unsigned char*>(object.data()) + to, &got);
    if (got != out) fault(from, "a broken block");
    from += static_cast<std::size_t>(in);
    to += static_cast<std::size_t>(out);
  }
  return object;
}

}  // namespace

/// The parts of a file that a shape compares. Throws Fault.
struct FileParts {
  explicit FileParts(std::span<const std::byte> image) : header(read_header(image)) {
    if (header.info_bytes > 0) streamer_infos = content_of(image, header.info_seek, header.info_bytes);
    const Directory top = read_directory(image, header.top(), header.end);
    const auto list = content_of(image, top.keys_seek, top.keys_bytes);
    Cursor cursor(list, 0, list.size());
    const auto count = cursor.number<std::uint32_t>();
    if (count > kMostTrees) fault(top.keys_seek, "more than a shape may have");
    for (std::uint32_t i = 0; i < count; ++i) keys.push_back(read_key(cursor));
  }

  Header header;
  std::span<const std::byte> streamer_infos;
  std::vector<Key> keys;
};

namespace {

std::vector<std::byte> object_of(std::span<const std::byte> image, const Key& key) {
  return unpacked(content_of(image, key.seek, static_cast<std::uint64_t>(key.bytes)), key.object_bytes);
}

bool same(std::span<const std::byte> one, std::span<const std::byte> other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size()) == 0;
}

/// Whether the output accepts the source and can copy the baskets of its trees.
bool fits(const Accepts& accepts, Source& source) {
  return accepts(source) && std::ranges::all_of(source.trees, [](const SourceTree& tree) {
           return tree.way == Way::baskets && has_no_baskets_in_memory(*tree.tree);
         });
}

/// Whether the file contains only trees, each once and in the top directory, whose baskets are copied.
bool is_simple(const Source& source, const FileParts& parts) {
  return !source.trees.empty() && source.trees.size() == parts.keys.size() &&
         source.trees.size() == source.kinds.size() && std::ranges::all_of(source.trees, [](const SourceTree& tree) {
           return tree.place.directory.empty() && tree.way == Way::baskets && has_no_baskets_in_memory(*tree.tree);
         });
}

}  // namespace

std::shared_ptr<KnownShape> KnownShape::learn(std::unique_ptr<Source>& source, std::span<const std::byte> bytes,
                                              const Accepts& accepts) {
  const RootErrors errors;
  try {
    const FileParts parts(bytes);
    if (!is_simple(*source, parts) || parts.streamer_infos.size() > kLargestHeader) return nullptr;
    auto shape = std::make_shared<KnownShape>();
    shape->compression_ = parts.header.compression;
    shape->streamer_infos_.assign(parts.streamer_infos.begin(), parts.streamer_infos.end());
    for (std::size_t i = 0; i < parts.keys.size(); ++i) {
      const Key& key = parts.keys[i];
      SourceTree& tree = source->trees[i];
      if (tree.place.name != key.name || key.object_bytes > kLargestHeader) return nullptr;
      auto numbers = TreeNumbers::read(
          {source->file(), *tree.tree->IsA(), static_cast<std::size_t>(key.key_bytes), object_of(bytes, key)});
      if (!numbers) return nullptr;
      // The worker may have changed the memory since the tree was appended, so this may be a different tree. fits()
      // compares it again.
      tree.tree = std::move(numbers->tree);
      tree.way = Way::none;
      shape->trees_.push_back(
          {std::string(key.type), std::string(key.name), std::string(key.title), std::move(*numbers)});
    }
    if (!errors.first().empty() || !fits(accepts, *source)) return nullptr;
    shape->source_ = std::move(source);
    return shape;
  } catch (const Fault&) {
    return nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::vector<std::vector<std::byte>> KnownShape::headers_if_like(std::span<const std::byte> bytes) const {
  try {
    const FileParts parts(bytes);
    if (parts.header.compression != compression_ || parts.keys.size() != trees_.size()) return {};
    if (!same(parts.streamer_infos, streamer_infos_)) return {};
    std::vector<std::vector<std::byte>> headers;
    for (std::size_t i = 0; i < trees_.size(); ++i) {
      const Tree& tree = trees_[i];
      const Key& key = parts.keys[i];
      if (key.object_bytes != tree.numbers.size() || key.type != tree.type || key.name != tree.name ||
          key.title != tree.title)
        return {};
      headers.push_back(object_of(bytes, key));
      if (!tree.numbers.fits(headers.back())) return {};
    }
    return headers;
  } catch (const Fault&) {
    return {};  // reading the file reports the fault
  } catch (const std::bad_alloc&) {
    return {};
  }
}

Source& KnownShape::become(std::span<const std::byte> bytes, const std::vector<std::vector<std::byte>>& headers) {
  for (std::size_t i = 0; i < trees_.size(); ++i) trees_[i].numbers.set(headers[i]);
  source_->become(bytes);
  return *source_;
}

KnownShapes::Match KnownShapes::find(std::span<const std::byte> bytes) const {
  for (const auto& shape : shapes_) {
    auto headers = shape->headers_if_like(bytes);
    if (!headers.empty()) return {shape, std::move(headers)};
  }
  return {};
}

void KnownShapes::note(const Match& match) {
  ++hits_;
  const auto at = std::ranges::find(shapes_, match.shape);
  std::rotate(shapes_.begin(), at, at == shapes_.end() ? at : at + 1);
}

void KnownShapes::learn(std::unique_ptr<Source>& source, std::span<const std::byte> bytes, const Accepts& accepts) {
  if (attempts_ >= kFirstAttempts + hits_ / kHitsPerAttempt || find(bytes).shape) return;
  ++attempts_;
  auto shape = KnownShape::learn(source, bytes, accepts);
  if (!shape) return;
  shapes_.insert(shapes_.begin(), std::move(shape));
  if (shapes_.size() > kMostShapes) shapes_.pop_back();
}

}  // namespace wherry::merge
