// SPDX-License-Identifier: Apache-2.0
// poller COUNT: prints what COUNT workers (worker.cc) send. A thousand idle ones would cost nothing.
#include <wherry/wherry.hpp>

#include <array>
#include <cstdlib>
#include <iostream>
#include <map>
#include <span>

namespace {

using Token = wherry::Poller::Token;
constexpr Token kListener = 0;

/// True at the end, or after a failure.
bool print(wherry::Stream& stream) {
  std::array<char, 4096> buffer;
  const wherry::Result got = stream.try_receive(buffer.data(), buffer.size());
  std::cout.write(buffer.data(), static_cast<std::streamsize>(got.bytes));
  if (got.failed()) std::cerr << stream.peer().address << ": " << got << '\n';
  return got.ended() || got.failed();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  try {
    unsigned long to_come = std::strtoul(arguments[1], nullptr, 10);
    wherry::Listener listener = wherry::listen("wherry://*:2000");
    wherry::Poller poller;
    poller.add(listener.descriptor(), kListener);
    std::map<Token, wherry::Stream> streams;
    Token last = kListener;
    while (to_come != 0 || !streams.empty()) {
      std::array<Token, 64> ready{};
      const std::size_t reports = poller.wait(ready);
      for (const Token token : std::span(ready).first(reports)) {
        if (token != kListener) {
          if (print(streams.at(token))) streams.erase(token);  // which takes it out of the poller
          continue;
        }
        for (; to_come != 0; --to_come) {
          auto stream = listener.try_accept();
          if (!stream) break;
          wherry::Stream& added = streams[++last] = std::move(*stream);
          poller.add(added, last);
        }
      }
    }
  } catch (const wherry::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return std::cout.flush() ? 0 : 1;
}
