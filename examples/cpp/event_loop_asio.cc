// SPDX-License-Identifier: Apache-2.0
// event_loop_asio COUNT: prints what COUNT workers (worker.cc) send, in an event loop of asio's.
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <wherry/wherry.hpp>

#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>

namespace {

using Descriptor = asio::posix::stream_descriptor;

/// asio watches a descriptor that belongs to the stream, and must not close it.
struct Session {
  Session(asio::io_context& loop, wherry::Stream accepted)
      : stream(std::move(accepted)), descriptor(loop, stream.receive_descriptor()) {}
  ~Session() { descriptor.release(); }

  wherry::Stream stream;
  Descriptor descriptor;
};

/// The session ends with its last handler.
void receive(const std::shared_ptr<Session>& session) {
  session->descriptor.async_wait(Descriptor::wait_read, [session](const std::error_code& error) {
    std::array<char, 4096> buffer;
    wherry::Result got;
    while (!error && (got = session->stream.try_receive(buffer.data(), buffer.size())))
      std::cout.write(buffer.data(), static_cast<std::streamsize>(got.bytes));
    if (!error && got.would_block()) receive(session);
  });
}

void accept(wherry::Listener& listener, Descriptor& descriptor, asio::io_context& loop, unsigned long to_come) {
  descriptor.async_wait(Descriptor::wait_read, [&, to_come](const std::error_code& error) mutable {
    for (; to_come != 0; --to_come) {
      auto stream = listener.try_accept();
      if (!stream) break;
      receive(std::make_shared<Session>(loop, std::move(*stream)));
    }
    if (!error && to_come != 0) accept(listener, descriptor, loop, to_come);
  });
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  asio::io_context loop;
  wherry::Listener listener = wherry::listen("wherry://*:2000");
  Descriptor descriptor(loop, listener.descriptor());
  accept(listener, descriptor, loop, std::strtoul(arguments[1], nullptr, 10));
  loop.run();
  descriptor.release();
  return std::cout.flush() ? 0 : 1;
}
