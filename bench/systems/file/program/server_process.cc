// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/program/server_process.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "bench/systems/file/program/pipe.hpp"
#include "file/server/server.hpp"

namespace wherry::bench::file {
namespace {

int serve(const std::string& root, Pipe& address, int stop) {
  try {
    ::wherry::file::Server server({.root = root, .listen = "wherry://*:*"});
    const std::string text = server.address();
    if (::write(address.write.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return 1;
    address.write.reset();
    std::thread told([&server, stop] {
      read_all(stop);
      server.stop();
    });
    server.run();
    told.join();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "server: {}\n", error.what());
    std::fflush(stderr);
    return 1;
  }
}

}  // namespace

ServerProcess::ServerProcess(const std::string& root) {
  Pipe stop = make_pipe();
  Pipe address = make_pipe();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::system_category(), "fork");
  if (pid_ == 0) {
    stop.write.reset();
    std::_Exit(serve(root, address, stop.read.get()));
  }
  stop_ = std::move(stop.write);
  address.write.reset();
  address_ = read_all(address.read.get());
  if (address_.empty()) throw std::runtime_error("the host's server could not start");
}

ServerProcess::~ServerProcess() {
  stop_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace wherry::bench::file
