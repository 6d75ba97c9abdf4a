// SPDX-License-Identifier: Apache-2.0
#include <wherry/wherry.hpp>

#include <iostream>

int main() {
  try {
    wherry::Stream stream = wherry::connect("wherry://0:2000");
    stream.send("hello from a card\n");
    return stream.finish_sending() ? 0 : 1;  // a failed send makes this fail, too
  } catch (const wherry::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
