// SPDX-License-Identifier: Apache-2.0
//
// wherry pipe: connects standard input and output to a stream.
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
  // The user needs the resolved port for the other side.
  if (options.address.ends_with(":*") || options.address.ends_with(":0")) {
    std::fprintf(stderr, "wherry pipe: listening on %s\n", listener->address().c_str());
  }
  for (;;) {
    pollfd wanted{listener->descriptor(), POLLIN, 0};
    if (::poll(&wanted, 1, -1) < 0 && errno != EINTR) throw Error(errno, "wait", options.address, "");
    if (std::unique_ptr<Channel> channel = listener->try_accept()) return channel;
  }
}

// Reads standard input directly into the peer's memory. Sends every piece at once, because it may come from a keyboard.
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
  // The reader of standard output sees the end now, even if the other direction continues.
  if (::close(STDOUT_FILENO) != 0) throw Error(errno, "write", "standard output", "");
}

// Shared with the sending thread, which may still sleep in a read of a terminal when the process ends.
struct Duplex {
  std::shared_ptr<Channel> channel;
  std::exception_ptr sending;
};

// If one direction fails, the channel is cancelled, so the other fails too: it might wait forever for the peer. The
// peer of a cancelled channel sees a failure, not the end.
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
  // The peer finishes sending after it took everything.
  bool silent = false;
  try {
    silent = channel.peek(Channel::kForever).empty();
  } catch (const Error& error) {
    throw Error(error.code().value(), "send everything to", channel.peer().address, "look at the peer's error message");
  }
  if (!silent) throw std::runtime_error("the peer also sends; use --duplex on both sides");
}

void receive_all(Channel& channel) {
  write_output(channel);
  channel.finish_sending();
}

int pipe(const PipeOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is reported as an error
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
      "One side listens and one connects. By default the connecting side sends its standard input, and the listening "
      "side\n"
      "writes it to its standard output. Change this with --send, --receive or --duplex:\n"
      "  wherry pipe --listen wherry://0:2001 | tar x\n"
      "  tar c . | wherry pipe wherry://0:2001\n"
      "Exit status: 0 if all bytes arrived; 1 if not; 2 if the command line is wrong. With --duplex each side reports "
      "only\n"
      "the bytes that it wrote.");
  command.add_option("address", options->address, "wherry://NODE:PORT; or tcp://HOST:PORT, to compare")->required();
  command.add_flag("-l,--listen", options->listen, "Listen on the address, for one peer");
  auto* send = command.add_flag("--send", options->send, "Send standard input");
  auto* receive = command.add_flag("--receive", options->receive, "Write what arrives to standard output");
  auto* duplex = command.add_flag("--duplex", options->duplex, "Send and receive at the same time");
  send->excludes(receive)->excludes(duplex);
  receive->excludes(duplex);
  command.add_option("-w,--wait", options->wait, "Seconds to wait until a peer listens")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  return [options] { return pipe(*options); };
}

}  // namespace wherry::tools
