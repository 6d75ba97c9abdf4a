// SPDX-License-Identifier: Apache-2.0
#include "stream/frame_reader.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

namespace wherry::stream {
namespace {

using layout::FrameHeader;
using layout::FrameKind;

/// One load: the value that is checked is the value that is used.
FrameHeader header_at(const std::byte* place) {
  return std::bit_cast<FrameHeader>(reinterpret_cast<const layout::Word*>(place)->load(std::memory_order_relaxed));
}

}  // namespace

Result FrameReader::try_receive(std::span<const std::byte>& message) {
  Result result = take(message);
  if (result.would_block() && look_further()) result = take(message);
  if (!result.would_block()) return result;
  const Result readable = receiver_.try_readable();
  if (!readable.ok()) return readable;
  return look_further() ? take(message) : result;
}

Result FrameReader::receive(std::span<const std::byte>& message, fabric::Deadline deadline) {
  while (true) {
    const Result result = take(message);
    if (!result.would_block()) return result;
    if (const Result consumed = consume_passed(); consumed.failed()) return consumed;
    if (const Result more = receiver_.wait_for_more(deadline); !more.ok()) return more;
    look_further();
  }
}

Result FrameReader::consume_shown() {
  passed_ += std::exchange(shown_, 0);
  return consume_passed();
}

/// Takes the next known message: moved, would_block, or EPROTO for ever.
Result FrameReader::take(std::span<const std::byte>& message) {
  if (broken_) return Result::failure(EPROTO);
  passed_ += std::exchange(shown_, 0);
  // Returns credit early, long before all arrived frames are consumed.
  if (passed_ >= receiver_.capacity() / 8 && consume_passed().failed()) return Result::failure(EINVAL);
  while (true) {
    if (here_.empty()) here_ = std::exchange(after_, {});
    if (here_.empty()) return Result::blocked();
    if (receiver_.cancelled()) return Result::failure(ECANCELED);
    if (here_.size() < sizeof(FrameHeader)) break;
    const FrameHeader header = header_at(here_.data());
    const std::size_t frame = layout::frame_bytes(header.bytes);
    if (frame > here_.size()) break;
    if (header.kind == FrameKind::message) {
      message = here_.subspan(sizeof header, header.bytes);
      here_ = here_.subspan(frame);
      shown_ = frame;
      return Result::moved(message.size());
    }
    if (header.kind != FrameKind::filler) break;
    here_ = here_.subspan(frame);
    passed_ += frame;
  }
  broken_ = true;
  return Result::failure(EPROTO);
}

/// Looks for newly arrived frames. False: nothing has arrived.
bool FrameReader::look_further() {
  if (consume_passed().failed()) return false;
  const ConstRegions regions = receiver_.peek(SIZE_MAX);
  // Up to 7 bytes are skipped if the first frame begins at an unaligned position, and nowhere else.
  const std::size_t odd = -reinterpret_cast<std::uintptr_t>(regions.first.data()) % layout::kFrameAlignment;
  const std::size_t skipped = std::min(odd, regions.first.size());
  here_ = regions.first.subspan(skipped);
  after_ = regions.second;
  passed_ = skipped;
  return !regions.empty();
}

Result FrameReader::consume_passed() {
  const std::size_t bytes = std::exchange(passed_, 0);
  return bytes == 0 ? Result::moved(0) : receiver_.consume(bytes);
}

}  // namespace wherry::stream
