// SPDX-License-Identifier: Apache-2.0
//
// poster ADDRESS FILE...: hands each file over as it is, whatever it is, waits until it is done, and says so in a line.
// Exit status 2: there was no server to hand anything to.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <span>
#include <vector>

#include "adapters/root/handover/client/client.hpp"

namespace {

int hand_over(wherry::root::WindowClient& client, std::span<char*> names) try {
  for (const char* name : names) {
    std::ifstream file(name, std::ios::binary);
    const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
    const auto memory = client.grow(std::max<std::size_t>(bytes.size(), 1));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(memory.data()));
    client.post("out.root", bytes.size());
    client.wait();
    std::printf("done %s\n", name);
    std::fflush(stdout);
  }
  client.finish();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "poster: %s\n", error.what());
  return 1;
}

}  // namespace

int main(int count, char** words) try {
  wherry::root::WindowClient client(words[1]);
  return hand_over(client, std::span(words, static_cast<std::size_t>(count)).subspan(2));
} catch (const std::exception& error) {
  std::fprintf(stderr, "poster: %s\n", error.what());
  return 2;
}
