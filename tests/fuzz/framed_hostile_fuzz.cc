// SPDX-License-Identifier: Apache-2.0
// Messages from and to a hostile peer, which writes over lengths and payload at any moment: whatever it does, a message
// shown lies within what has arrived, a call returns, and goes on or reports an error.
#include <cstdlib>
#include <vector>

#include <wherry/framed.hpp>

#include "layout/frame.hpp"
#include "tests/fuzz/hostile_connection.hpp"
#include "tests/fuzz/quieten.hpp"

namespace wherry::fuzz {
namespace {

using namespace std::chrono_literals;

/// The peer publishes frames, good ones mostly, so that the reader gets further than the first header.
void publish_frames(HostileConnection& hostile, Input& input) {
  auto& page = *reinterpret_cast<layout::StreamPage*>(hostile.segment().data());
  std::byte* const ring = hostile.segment().data() + layout::kStreamPageBytes;
  std::uint64_t tail = page.tail;
  const int frames = input.number<std::uint8_t>() % 4;
  for (int i = 0; i < frames; ++i) {
    const std::size_t place = tail % kCapacity / 8 * 8;
    layout::FrameHeader header{input.number<std::uint8_t>(), layout::FrameKind::message};
    if (input.one_in(8)) header.kind = static_cast<layout::FrameKind>(input.number<std::uint8_t>() % 4);
    if (input.one_in(8)) header.bytes = input.number<std::uint32_t>();
    if (input.one_in(4)) header.bytes = static_cast<std::uint32_t>(kCapacity - place - sizeof header);
    std::memcpy(ring + place, &header, sizeof header);
    tail += layout::frame_bytes(header.bytes);
  }
  page.tail = tail;
}

void require_within(const HostileConnection& hostile, const Received& received) {
  require_sane(received.result, layout::max_message(2 * kCapacity));
  if (!received.result.ok()) return;
  const std::span<std::byte> segment = hostile.segment();
  require(received.message.data() >= segment.data() + layout::kStreamPageBytes);
  require(received.message.data() + received.message.size() <= segment.data() + segment.size());
  read_all({received.message, {}});
}

void one_call(FramedStream& framed, HostileConnection& hostile, Input& input, std::vector<std::byte>& buffer) {
  const std::size_t size = input.number<std::uint16_t>() % buffer.size();
  const std::span<std::byte> bytes(buffer.data(), size);
  const iovec pieces[] = {{buffer.data(), size / 3}, {nullptr, 0}, {buffer.data() + size / 3, size - size / 3}};
  switch (input.number<std::uint8_t>() % 10) {
    case 0:
      return require_sane(framed.send(bytes, 0ns), framed.max_send());
    case 1:
      return require_sane(framed.send(pieces, 0ns), framed.max_send());
    case 2:
      return require_sane(framed.try_send(bytes), framed.max_send());
    case 3: {
      const std::span<std::byte> place = framed.reserve(size);
      require(place.data() == nullptr || place.size() == size);
      std::fill(place.begin(), place.end(), std::byte{1});
      return require_sane(framed.commit(input.number<std::uint16_t>()), place.size());
    }
    case 4:
      return framed.hold();
    case 5:
      return require_sane(framed.flush(), kCapacity);
    case 6:
      return require_sane(framed.wait_writable(size, 0ns), framed.max_send());
    case 7:
      return require_within(hostile, framed.receive(0ns));
    case 8:
      return (void)(input.one_in(2) ? framed.stream().receive_descriptor() : framed.stream().send_descriptor());
    default:
      return require_within(hostile, framed.try_receive());
  }
}

}  // namespace
}  // namespace wherry::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  wherry::fuzz::quieten();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  fuzz::Input input({data, size});
  auto connection = std::make_unique<fuzz::HostileConnection>(input, input.one_in(2));
  fuzz::HostileConnection& hostile = *connection;
  FramedStream framed(stream::make_stream(std::move(connection), Address{}, {.own = fuzz::kCapacity}, "fuzz"));
  std::vector<std::byte> buffer(fuzz::kCapacity);
  while (!input.empty()) {
    if (input.one_in(2)) {
      fuzz::publish_frames(hostile, input);
    } else {
      hostile.scribble();
    }
    fuzz::one_call(framed, hostile, input, buffer);
  }
  return 0;
}
