// SPDX-License-Identifier: Apache-2.0
// A user's first program: two ends of a stream, here in one process so that it needs no second one.
#include <wherry/wherry.hpp>

#include <array>
#include <cstddef>
#include <iostream>
#include <optional>
#include <span>
#include <string_view>

int main() {
  auto listener = wherry::listen("wherry+inproc://*:*");
  auto connecting = wherry::start_connect(listener.local().to_string());
  wherry::Stream host = listener.accept();
  std::optional<wherry::Stream> worker;
  while (!worker) worker = connecting.try_finish();

  constexpr std::string_view kText = "hello from outside";
  worker->send(std::as_bytes(std::span(kText)));
  worker->close();

  std::array<std::byte, kText.size()> buffer{};
  const wherry::Result result = host.receive_all(buffer);
  const std::string_view received(reinterpret_cast<const char*>(buffer.data()), result.bytes);
  std::cout << received << '\n';
  return received == kText ? 0 : 1;
}
