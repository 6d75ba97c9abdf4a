// SPDX-License-Identifier: Apache-2.0
// framed: prints the messages that come; framed MESSAGE...: sends them. Each arrives whole.
#include <wherry/wherry.hpp>

#include <iostream>
#include <span>

namespace {

wherry::Result receive() {
  wherry::Listener listener = wherry::listen("wherry://*:2000");
  wherry::FramedStream stream(listener.accept());
  while (true) {
    const wherry::Received received = stream.receive();
    if (!received) return received.result;
    std::cout << received.text() << '\n';  // read where it lies, in the ring
  }
}

wherry::Result send(std::span<char*> messages) {
  wherry::FramedStream stream(wherry::connect("wherry://0:2000"));
  stream.hold();  // many small messages: one publication, one wake-up
  for (const char* message : messages) {
    const wherry::Result result = stream.send(message);
    if (result.failed()) return result;
  }
  return stream.flush();
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::span messages(arguments + 1, static_cast<std::size_t>(count - 1));
    const wherry::Result result = messages.empty() ? receive() : send(messages);
    if (result.failed()) std::cerr << result << '\n';
    return result.failed() ? 1 : 0;
  } catch (const wherry::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
