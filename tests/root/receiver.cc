// SPDX-License-Identifier: Apache-2.0
//
// receiver DIR [budget=BYTES] [unit=BYTES] [max_file=BYTES] [address=ADDRESS] [drop=FILES]: a server of files in
// windows that writes each file it gets to DIR/WORKER-SEQUENCE.root. Says its address in a line, then what happens, a
// line each. Ends at the end of its input. drop: so many files are taken and the server dies without saying that they
// were.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "adapters/root/handover/server/server.hpp"

using wherry::root::Event;
using wherry::root::ServerOptions;
using wherry::root::WindowServer;

namespace {

struct Arguments {
  std::filesystem::path directory;
  std::string address = "wherry://*:*";
  std::size_t drop = SIZE_MAX;
  ServerOptions server;
};

Arguments parse(int count, char** words) {
  Arguments arguments;
  arguments.directory = words[1];
  for (int i = 2; i < count; ++i) {
    const std::string_view word = words[i];
    const std::size_t sign = word.find('=');
    const std::string_view key = word.substr(0, sign);
    const std::string value(word.substr(sign + 1));
    if (key == "address") {
      arguments.address = value;
      continue;
    }
    const std::size_t number = std::stoull(value);
    if (key == "budget") arguments.server.budget = number;
    if (key == "unit") arguments.server.unit = number;
    if (key == "max_file") arguments.server.max_file = number;
    if (key == "drop") arguments.drop = number;
  }
  return arguments;
}

bool store(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file.good();
}

void take(const Arguments& arguments, Event& event) {
  static std::size_t taken = 0;
  const std::string name = std::to_string(event.worker->number) + "-" + std::to_string(event.file.sequence()) + ".root";
  if (!store(arguments.directory / name, event.file.bytes())) return event.file.refuse("the disk is full");
  std::printf("posted %s %zu %s\n", name.c_str(), event.file.bytes().size(), event.file.name().c_str());
  if (++taken >= arguments.drop) std::_Exit(9);
  event.file.done();
}

void report(const Arguments& arguments, Event& event) {
  switch (event.kind) {
    case Event::Kind::joined:
      std::printf("joined %lu\n", event.worker->number);
      break;
    case Event::Kind::posted:
      take(arguments, event);
      break;
    case Event::Kind::finished:
      std::printf("finished %lu\n", event.worker->number);
      break;
    case Event::Kind::gone:
      std::printf("gone %lu %zu %s\n", event.worker->number, event.lost, event.reason.c_str());
      break;
  }
}

}  // namespace

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const Arguments arguments = parse(count, words);
  WindowServer server(arguments.address, arguments.server);
  std::printf("%s\n", server.local().to_string().c_str());
  for (;;) {
    std::array<pollfd, 2> polled{pollfd{server.descriptor(), POLLIN, 0}, pollfd{STDIN_FILENO, POLLIN, 0}};
    ::poll(polled.data(), polled.size(), -1);
    while (auto event = server.next(std::chrono::nanoseconds(0))) report(arguments, *event);
    if (polled[1].revents != 0) {
      const auto statistics = server.statistics();
      std::printf("statistics held=%zu warm=%zu leases=%zu over_budget_grants=%zu\n", statistics.held, statistics.warm,
                  statistics.leases, statistics.over_budget_grants);
      return 0;
    }
  }
}
