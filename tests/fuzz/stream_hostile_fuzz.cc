// SPDX-License-Identifier: Apache-2.0
// A stream whose peer writes what it likes into every shared word at any moment between two calls, and whose fabric
// wakes, times out and dies as the input says. Both segments are heap blocks of exactly their size, so that one byte
// outside is seen. Whatever happens, a call returns, moves no more than it may, and goes on or reports an error.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ring/ring.hpp"
#include "stream/handshake.hpp"
#include "tests/fuzz/input.hpp"

namespace wherry::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kCapacity = ring::kMinCapacity;
constexpr std::size_t kSegment = layout::kStreamPageBytes + kCapacity;

struct AlignedBlock {
  AlignedBlock() : bytes(static_cast<std::byte*>(std::aligned_alloc(4096, kSegment))) {
    std::memset(bytes, 0, kSegment);
  }
  AlignedBlock(const AlignedBlock&) = delete;
  AlignedBlock& operator=(const AlignedBlock&) = delete;
  ~AlignedBlock() { std::free(bytes); }
  std::byte* bytes;
};

/// The victim's view of a connection; the other side of it is the input.
class HostileConnection final : public fabric::Connection {
 public:
  HostileConnection(Input& input, bool maps) : input_(input), maps_(maps) {
    const fabric::Offer offer = stream::offer_of(kCapacity);
    greeting_ = offer.greeting;
    for (const fabric::Bell bell : fabric::kBells)
      doors_[fabric::index(bell)].sleeper = &page_.sleepers[fabric::index(bell)].epoch;
  }

  std::span<std::byte> segment() const override { return {own_.bytes, kSegment}; }
  std::byte* map() const override { return maps_ ? remote_.bytes : nullptr; }
  std::size_t remote_bytes() const override { return kSegment; }

  std::size_t put(std::uint64_t offset, std::span<const std::byte> source) override {
    if (input_.one_in(32)) return 0;
    const std::size_t n = input_.one_in(2) ? source.size() : 1 + input_.number<std::uint16_t>() % source.size();
    std::memcpy(remote_.bytes + offset, source.data(), n);
    return n;
  }
  bool get(std::span<std::byte>, std::uint64_t) override { return false; }
  bool signal(std::uint64_t offset, std::uint64_t value, fabric::Bell) override {
    reinterpret_cast<layout::Word*>(remote_.bytes + offset)->store(value);
    scribble();
    return !input_.one_in(32);
  }
  bool flush() override { return true; }

  void arm(fabric::Bell) override { scribble(); }
  void disarm(fabric::Bell) override { scribble(); }
  bool silence(fabric::Bell) override { return input_.one_in(2); }
  fabric::Wake wait(fabric::Bell, fabric::Deadline) override {
    scribble();
    if (input_.empty()) return fabric::Wake::gone;
    return static_cast<fabric::Wake>(input_.number<std::uint8_t>() % 3);
  }
  int descriptor(fabric::Bell) override { return 0; }
  void ring_own(fabric::Bell) override {}
  bool peer_gone() override { return input_.one_in(16); }
  const Peer& peer() const override { return peer_; }
  const fabric::Greeting& peer_greeting() const override { return greeting_; }

  /// The peer writes a word or a stretch of bytes somewhere in the victim's memory.
  void scribble() {
    while (input_.one_in(2)) {
      auto& page = *reinterpret_cast<layout::StreamPage*>(own_.bytes);
      layout::Word* const words[] = {&page.tail,   &page.finished,           &page.head,
                                     &page.closed, &page_.sleepers[0].epoch, &page_.sleepers[1].epoch};
      layout::Word& word = *words[input_.number<std::uint8_t>() % std::size(words)];
      switch (input_.number<std::uint8_t>() % 4) {
        case 0:
          word = input_.number<std::uint64_t>();
          break;
        case 1:
          word += input_.number<std::uint16_t>() % (2 * kCapacity);
          break;
        case 2:
          word = input_.number<std::uint8_t>();
          break;
        default:
          std::memset(own_.bytes + layout::kStreamPageBytes, input_.number<std::uint8_t>(), kCapacity);
          break;
      }
    }
  }

 protected:
  void ring(fabric::Bell) override {}

 private:
  Input& input_;
  bool maps_;
  AlignedBlock own_;
  AlignedBlock remote_;
  layout::BellPage page_{};
  Peer peer_;
  fabric::Greeting greeting_{};
};

void require(bool holds) {
  if (!holds) std::abort();
}

void require_sane(const Result& result, std::size_t most) {
  require(result.bytes <= most);
  require(result.failed() == (result.error != 0));
  require(!result.would_block() || result.bytes == 0);
}

void read_all(const ConstRegions& bytes) {
  unsigned sum = 0;
  for (const std::byte b : bytes.first) sum += std::to_integer<unsigned>(b);
  for (const std::byte b : bytes.second) sum += std::to_integer<unsigned>(b);
  require(sum != 1u << 31);  // So that the reads are not optimised away.
}

void one_call(Stream& stream, Input& input, std::vector<std::byte>& buffer) {
  const std::size_t size = input.number<std::uint16_t>() % buffer.size();
  const std::size_t cut = size / 3;
  const iovec pieces[] = {{buffer.data(), cut}, {nullptr, 0}, {buffer.data() + cut, size - cut}};
  const std::span<std::byte> bytes(buffer.data(), size);
  switch (input.number<std::uint8_t>() % 14) {
    case 0:
      return require_sane(stream.send(bytes, 0ns), size);
    case 1:
      return require_sane(stream.send(pieces, 0ns), size);
    case 2:
      return require_sane(stream.try_send(bytes), size);
    case 3:
      return require_sane(stream.try_send(pieces), size);
    case 4:
      return require_sane(stream.receive(bytes, 0ns), size);
    case 5:
      return require_sane(stream.receive_all(bytes, 0ns), size);
    case 6:
      return require_sane(stream.try_receive(bytes), size);
    case 7:
      return require_sane(stream.try_receive(pieces), size);
    case 8: {
      const Regions space = stream.reserve(size);
      require(space.size() <= std::min(size, kCapacity));
      for (const auto piece : {space.first, space.second}) std::fill(piece.begin(), piece.end(), std::byte{1});
      return require_sane(stream.commit(input.number<std::uint16_t>()), space.size());
    }
    case 9: {
      const ConstRegions shown = stream.peek(size);
      require(shown.size() <= std::min(size, kCapacity));
      read_all(shown);
      return require_sane(stream.consume(input.number<std::uint16_t>()), shown.size());
    }
    case 10:
      return require_sane(stream.wait_readable(0ns), kCapacity);
    case 11:
      return require_sane(stream.wait_writable(size, 0ns), kCapacity);
    case 12:
      return (void)(input.one_in(2) ? stream.receive_descriptor() : stream.send_descriptor());
    default:
      return require_sane(stream.finish_sending(), 0);
  }
}

}  // namespace
}  // namespace wherry::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("WHERRY_SPIN", "0", 1);
  setenv("WHERRY_STATISTICS", "off", 1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  fuzz::Input input({data, size});
  auto connection = std::make_unique<fuzz::HostileConnection>(input, input.one_in(2));
  fuzz::HostileConnection& hostile = *connection;
  Stream stream = stream::make_stream(std::move(connection), Address{}, fuzz::kCapacity, "fuzz");
  std::vector<std::byte> buffer(3 * fuzz::kCapacity);
  while (!input.empty()) {
    hostile.scribble();
    fuzz::one_call(stream, input, buffer);
  }
  return 0;
}
