// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {

StreamTest::StreamTest() : faults_("WHERRY_FAULTS", std::string(GetParam().faults).c_str()) {}

std::string StreamTest::address(std::string_view where) const {
  std::string text = "wherry+";
  return text.append(GetParam().fabric).append("://").append(where);
}

Streams StreamTest::connect_pair(StreamOptions connector, StreamOptions acceptor) const {
  Listener listener = listen(address(), acceptor);
  Connecting connecting = start_connect(listener.local().to_string(), connector);
  Streams streams;
  streams.acceptor = listener.accept(kTimeout);
  for (const auto end = in(kTimeout); std::chrono::steady_clock::now() < *end;) {
    if (auto stream = connecting.try_finish()) {
      streams.connector = std::move(*stream);
      return streams;
    }
    (void)becomes_readable(connecting.descriptor(), 10ms);
  }
  throw std::runtime_error("the connection was never finished");
}

std::size_t send_until_full(Stream& stream, const Pattern& pattern, std::uint64_t position) {
  std::size_t sent = 0;
  while (true) {
    const Result result = stream.try_send(pattern.bytes(1000, position + sent));
    EXPECT_FALSE(result.failed()) << result.error;
    if (!result.ok()) return sent;
    sent += result.bytes;
  }
}

void expect_bytes(Stream& stream, const Pattern& pattern, std::size_t count, std::uint64_t position) {
  std::vector<std::byte> read(count);
  const Result result = stream.receive_all(read, kTimeout);
  EXPECT_TRUE(result.ok()) << "error " << result.error << " after " << result.bytes << " of " << count;
  EXPECT_TRUE(pattern.matches(read, position));
}

void expect_all_then_end(Stream& stream, const Pattern& pattern, std::size_t count) {
  expect_bytes(stream, pattern, count);
  std::array<std::byte, 1> more{};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(stream.receive(more, kTimeout).ended()) << "the end stays";
}

}  // namespace wherry::conformance
