// SPDX-License-Identifier: Apache-2.0
#include <wherry/wherry.hpp>

#include <iostream>

int main() {
  wherry::Listener listener = wherry::listen("wherry://*:2000");
  wherry::Stream stream = listener.accept();
  char buffer[4096];
  wherry::Result got;
  while ((got = stream.receive(buffer, sizeof buffer)))
    std::cout.write(buffer, static_cast<std::streamsize>(got.bytes));
  if (got.failed()) std::cerr << stream.peer().address << ": " << got << '\n';
  return got.ended() && std::cout.flush() ? 0 : 1;
}
