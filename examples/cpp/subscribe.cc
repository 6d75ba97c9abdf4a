// SPDX-License-Identifier: Apache-2.0
// subscribe: takes the messages of publish.cc and prints the size and the first byte of each.
#include <wherry/wherry.hpp>

#include <iostream>

int main() {
  try {
    wherry::Subscriber subscriber;
    subscriber.connect("wherry://0:2000");
    wherry::Message message;
    wherry::Result got;
    while ((got = subscriber.take(message)))  // releases the message before, and its memory
      std::cout << got.bytes << " bytes of " << std::to_integer<int>(message.bytes().front()) << '\n';
    if (got.failed()) std::cerr << got << '\n';
    return got.ended() && std::cout.flush() ? 0 : 1;
  } catch (const wherry::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
