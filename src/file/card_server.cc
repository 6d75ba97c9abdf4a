// SPDX-License-Identifier: Apache-2.0
#include "file/card_server.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "base/log.hpp"

namespace wherry::file {
namespace {

/// Copies for callers that want none of their own core used: more would compete with them.
constexpr std::size_t kThreads = 2;

std::uint64_t new_secret() {
  std::uint64_t secret = 0;
  while (secret == 0) {
    if (::getrandom(&secret, sizeof secret, 0) != sizeof secret && errno != EINTR) {
      throw Error(errno, "serve files from the card", "", "the kernel gives no random numbers");
    }
  }
  return secret;
}

std::thread serving(Server& server, const std::string& path) {
  try {
    return std::thread([&server] {
      try {
        server.run();
      } catch (const std::exception& error) {
        log::write(log::Level::warning, std::string("wherry card: no files are served any more: ") + error.what());
      }
    });
  } catch (const std::system_error& error) {
    throw Error(error.code().value(), "serve files from the card", path, "allow more processes (ulimit -u, pids.max)");
  }
}

}  // namespace

CardServer::CardServer(const std::string& path, AtFaultPoint at) {
  if (const Refusal refusal = cache_.attach(path.c_str())) {
    cache_.detach();
    throw Error(refusal.error, "serve files from the card", path, refusal.advice);
  }
  try {
    const Secrets secrets{.token = new_secret(), .proof = new_secret()};
    server_.emplace(ServerOptions{.root = "/",
                                  .listen = "wherry+shm://*:*",
                                  .threads = kThreads,
                                  .read_only = true,
                                  .cache = &cache_,
                                  .secrets = secrets,
                                  .at = std::move(at)});
    const Cache::CardServer here{.port = Address::parse(server_->address()).port.value_or(0),
                                 .process = ::getpid(),
                                 .token = secrets.token,
                                 .proof = secrets.proof};
    thread_ = serving(*server_, path);
    cache_.announce(here);
  } catch (...) {
    cache_.detach();
    throw;
  }
}

CardServer::~CardServer() {
  cache_.announce({});
  server_->stop();
  thread_.join();
  server_.reset();
  cache_.detach();
}

}  // namespace wherry::file
