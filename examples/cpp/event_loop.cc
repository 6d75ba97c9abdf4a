// SPDX-License-Identifier: Apache-2.0
// event_loop COUNT: prints what COUNT workers (worker.cc) send, in an event loop of the program's own.
#include <sys/epoll.h>
#include <wherry/wherry.hpp>

#include <array>
#include <cstdlib>
#include <iostream>
#include <map>

namespace {

void watch(int epoll, int descriptor) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

/// Receives until nothing is left, which silences the descriptor. True at the end, or after a failure.
bool print(wherry::Stream& stream) {
  std::array<char, 4096> buffer;
  wherry::Result got;
  while ((got = stream.try_receive(buffer.data(), buffer.size())))
    std::cout.write(buffer.data(), static_cast<std::streamsize>(got.bytes));
  if (got.failed()) std::cerr << stream.peer().address << ": " << got << '\n';
  return !got.would_block();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  try {
    unsigned long to_come = std::strtoul(arguments[1], nullptr, 10);
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    wherry::Listener listener = wherry::listen("wherry://*:2000");
    watch(epoll, listener.descriptor());
    std::map<int, wherry::Stream> streams;  // by descriptor
    while (to_come != 0 || !streams.empty()) {
      epoll_event event{};
      if (::epoll_wait(epoll, &event, 1, -1) != 1) continue;
      if (const auto found = streams.find(event.data.fd); found != streams.end()) {
        if (print(found->second)) streams.erase(found);  // which closes the descriptor
        continue;
      }
      for (; to_come != 0; --to_come) {
        auto stream = listener.try_accept();
        if (!stream) break;
        watch(epoll, stream->receive_descriptor());
        streams.emplace(stream->receive_descriptor(), std::move(*stream));
      }
    }
  } catch (const wherry::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return std::cout.flush() ? 0 : 1;
}
