// SPDX-License-Identifier: Apache-2.0
//
// wherry pipe: standard input and output as the ends of a stream.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>

#include "channel/channel.hpp"
#include "commands.hpp"

namespace wherry::tools {
namespace {

struct PipeOptions {
  std::string address;
  bool listen = false;
  bool send = false;
  bool receive = false;
  bool duplex = false;
  double wait = 5;
};

std::unique_ptr<Channel> open_channel(const PipeOptions& options) {
  if (!options.listen)
    return connect_channel("wherry pipe", options.address, std::chrono::duration<double>(options.wait));
  const std::unique_ptr<ChannelListener> listener = listen_channel(options.address);
  // Where it really listens, the other side has to be told.
  if (options.address.ends_with(":*") || options.address.ends_with(":0")) {
    std::fprintf(stderr, "wherry pipe: listening on %s\n", listener->address().c_str());
  }
  for (;;) {
    pollfd wanted{listener->descriptor(), POLLIN, 0};
    if (::poll(&wanted, 1, -1) < 0 && errno != EINTR) throw Error(errno, "wait", options.address, "");
    if (std::unique_ptr<Channel> channel = listener->try_accept()) return channel;
  }
}

// Reads standard input straight into the peer's memory, and sends every piece at once: it may come from a keyboard.
void send_input(Channel& channel) {
  for (;;) {
    const std::span<std::byte> space = channel.space();
    const ssize_t n = ::read(STDIN_FILENO, space.data(), space.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error(errno, "read", "standard input", "");
    if (n == 0) break;
    channel.wrote(static_cast<std::size_t>(n));
    channel.flush();
  }
  channel.finish_sending();
}

void write_output(Channel& channel) {
  for (;;) {
    const std::span<const std::byte> arrived = channel.peek(Channel::kForever);
    if (arrived.empty()) break;
    const ssize_t n = ::write(STDOUT_FILENO, arrived.data(), arrived.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error(errno, "write", "standard output", "");
    channel.took(static_cast<std::size_t>(n));
  }
  // Its reader sees the end now, even if the other direction goes on.
  if (::close(STDOUT_FILENO) != 0) throw Error(errno, "write", "standard output", "");
}

// Shared with the sending thread: it may sleep in a read of a terminal when the process is about to end.
struct Duplex {
  std::shared_ptr<Channel> channel;
  std::exception_ptr sending;
};

// If one direction fails both do: the other might wait for ever for a peer that is in trouble. And a channel that is
// cancelled has no end: the peer hears of a failure, too.
template <class Move>
std::exception_ptr run_or_cancel(Channel& channel, Move move) {
  try {
    move(channel);
    return nullptr;
  } catch (...) {
    channel.cancel();
    return std::current_exception();
  }
}

void move_both(const std::shared_ptr<Channel>& channel) {
  const auto both = std::make_shared<Duplex>(Duplex{channel, nullptr});
  std::thread sender([both] { both->sending = run_or_cancel(*both->channel, send_input); });
  if (const std::exception_ptr receiving = run_or_cancel(*channel, write_output)) {
    sender.detach();
    std::rethrow_exception(receiving);
  }
  sender.join();
  if (both->sending) std::rethrow_exception(both->sending);
}

void send_all(Channel& channel) {
  send_input(channel);
  // The peer's end tells that it took everything.
  bool silent = false;
  try {
    silent = channel.peek(Channel::kForever).empty();
  } catch (const Error& error) {
    throw Error(error.code().value(), "send everything to", channel.peer().address, "look at what the peer says");
  }
  if (!silent) throw std::runtime_error("the peer sends as well; use --duplex on both sides");
}

void receive_all(Channel& channel) {
  write_output(channel);
  channel.finish_sending();
}

int pipe(const PipeOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that is gone is an error to report
  const std::shared_ptr<Channel> channel = open_channel(options);
  if (options.duplex) {
    move_both(channel);
    return 0;
  }
  const bool sends = options.send || (!options.receive && !options.listen);
  if (const std::exception_ptr failed = run_or_cancel(*channel, sends ? send_all : receive_all)) {
    std::rethrow_exception(failed);
  }
  return 0;
}

}  // namespace

Action add_pipe(CLI::App& command) {
  const auto options = std::make_shared<PipeOptions>();
  command.footer(
      "One side listens and one connects. The connecting side sends its standard input and the listening side writes "
      "it\n"
      "to its standard output, unless --send, --receive or --duplex says otherwise:\n"
      "  wherry pipe --listen wherry://0:2001 | tar x\n"
      "  tar c . | wherry pipe wherry://0:2001\n"
      "Exit status: 0 if everything arrived; 1 if not; 2 if the command line is wrong. With --duplex each side "
      "answers\n"
      "for what it wrote itself.");
  command.add_option("address", options->address, "wherry://NODE:PORT; tcp://HOST:PORT to compare")->required();
  command.add_flag("-l,--listen", options->listen, "Listen there, for one peer");
  auto* send = command.add_flag("--send", options->send, "Send standard input");
  auto* receive = command.add_flag("--receive", options->receive, "Write what arrives to standard output");
  auto* duplex = command.add_flag("--duplex", options->duplex, "Both at once");
  send->excludes(receive)->excludes(duplex);
  receive->excludes(duplex);
  command.add_option("-w,--wait", options->wait, "Seconds to wait for a peer to listen")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  return [options] { return pipe(*options); };
}

}  // namespace wherry::tools
