// SPDX-License-Identifier: Apache-2.0
//
// poster ADDRESS FILE...: hands each file over as it is, whatever it is, waits until it is done, and says so in a line.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <vector>

#include "adapters/root/transport/client.hpp"

int main(int count, char** words) try {
  wherry::root::WindowClient client(words[1]);
  for (int i = 2; i < count; ++i) {
    std::ifstream file(words[i], std::ios::binary);
    const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
    const auto memory = client.grow(std::max<std::size_t>(bytes.size(), 1));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(memory.data()));
    client.post("out.root", bytes.size());
    client.wait();
    std::printf("done %s\n", words[i]);
    std::fflush(stdout);
  }
  client.finish();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "poster: %s\n", error.what());
  return 1;
}
