// SPDX-License-Identifier: Apache-2.0
// A stream with a hostile peer: whatever happens, a call returns, moves no more than it may, and goes on or reports an
// error.
#include <cstdlib>
#include <vector>

#include "tests/fuzz/hostile_connection.hpp"
#include "tests/fuzz/quieten.hpp"

namespace wherry::fuzz {
namespace {

using namespace std::chrono_literals;

void one_call(Stream& stream, Input& input, std::vector<std::byte>& buffer) {
  const std::size_t size = input.number<std::uint16_t>() % buffer.size();
  const std::size_t cut = size / 3;
  const iovec pieces[] = {{buffer.data(), cut}, {nullptr, 0}, {buffer.data() + cut, size - cut}};
  const std::span<std::byte> bytes(buffer.data(), size);
  switch (input.number<std::uint8_t>() % 18) {
    case 14:
      return require_sane(stream.send(bytes), size);
    case 15:
      return require_sane(stream.send(pieces), size);
    case 16:
      return require_sane(stream.receive(bytes), size);
    case 17:
      return require_sane(stream.receive_all(bytes), size);
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
  wherry::fuzz::quieten();
  setenv("WHERRY_SPLIT", "256", 1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  fuzz::Input input({data, size});
  auto connection = std::make_unique<fuzz::HostileConnection>(input, input.one_in(2));
  fuzz::HostileConnection& hostile = *connection;
  Stream stream = stream::make_stream(std::move(connection), Address{}, {.own = fuzz::kCapacity}, "fuzz");
  std::vector<std::byte> buffer(3 * fuzz::kCapacity);
  while (!input.empty()) {
    hostile.scribble();
    fuzz::one_call(stream, input, buffer);
  }
  return 0;
}
