// SPDX-License-Identifier: Apache-2.0
//
// wherry serve: serves the host's files to the processes of its cards.
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>

#include "base/printable.hpp"
#include "base/readable.hpp"
#include "base/service_process.hpp"
#include "base/unique_fd.hpp"
#include "commands.hpp"
#include "file/server/server.hpp"

namespace wherry::tools {
namespace {

struct ServeOptions {
  file::ServerOptions server;
  bool quiet = false;
  bool no_lend = false;
  bool no_delegations = false;
  double recall_timeout = std::chrono::duration<double>(file::Terms().recall_timeout).count();  ///< seconds
};

int serve(const ServeOptions& options) {
  ::umask(0);  // clients set the mode of a file
  const UniqueFd signals = prepare_service_process({SIGINT, SIGTERM});
  if (!signals.valid()) throw Error(errno, "serve", "", "raise the limit of open files (ulimit -n)");
  file::Server server(options.server);
  if (!options.quiet) {
    std::fprintf(stderr, "wherry serve: serving %s%s on %s\n", printable(options.server.root).c_str(),
                 options.server.read_only ? ", for reading only," : "", server.address().c_str());
  }
  std::thread signal_reader([&] {
    signalfd_siginfo signal{};
    while (::read(signals.get(), &signal, sizeof signal) < 0 && errno == EINTR) continue;
    server.stop();
  });
  server.run();
  signal_reader.join();
  return 0;
}

}  // namespace

Action add_serve(CLI::App& command) {
  const auto options = std::make_shared<ServeOptions>();
  command.footer(
      "Clients reach only files below the directory: no \"..\", absolute name or symbolic link leads out of it.\n"
      "Only processes of the same user are served, with that user's rights. After fsync returns, writes are durable.\n"
      "If a server is killed and restarted, its clients reconnect and continue. SIGINT and SIGTERM end it.\n"
      "Exit status: 0 after SIGINT or SIGTERM; 1 if it failed; 2 if the command line is wrong.");
  command.add_option("-r,--root", options->server.root, "The directory to serve")->required();
  options->server.listen = "wherry://*:2049";
  command
      .add_option("-l,--listen", options->server.listen,
                  "Where clients connect: wherry://NODE:PORT, * for this node or a free port")
      ->capture_default_str();
  command
      .add_option("-t,--threads", options->server.threads,
                  "Threads that serve requests; a request that waits for the disk delays the others of its thread "
                  "(default: one per core, at least two)")
      ->check(CLI::Range(1, 1024));
  command
      .add_option(
          "--connections", options->server.connections,
          "Clients served at the same time; further ones wait (default: as many as the limit of open files allows)")
      ->check(CLI::Range(1, 65536));
  command.add_flag("--read-only", options->server.read_only, "Refuse all changes");
  command.add_flag("--no-lend", options->no_lend,
                   "Move all data through the server. Without this option clients under the same kernel may take the "
                   "descriptors of the files that they open");
  command.add_flag("--no-delegations", options->no_delegations,
                   "Grant no delegations, so that no open of a file waits for their recall from cards");
  command
      .add_option("--recall-timeout", options->recall_timeout,
                  "Seconds that an open of a file waits for a card that keeps writes of it and does not answer; then "
                  "these writes are refused (ESTALE)")
      ->check(CLI::Range(0.1, 8.0))
      ->capture_default_str();
  command.add_flag("-q,--quiet", options->quiet, "Print only errors");
  return [options] {
    options->server.lends = !options->no_lend;
    options->server.delegates = !options->no_delegations;
    options->server.recall_timeout = std::chrono::milliseconds(static_cast<long>(options->recall_timeout * 1000));
    return serve(*options);
  };
}

}  // namespace wherry::tools
