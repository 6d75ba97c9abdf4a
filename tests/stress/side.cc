// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/side.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace wherry::stress {

std::size_t Side::random_size() {
  const std::uint64_t dice = below(10'000);
  if (dice < 9'200) return 1 + below(64);
  if (dice < 9'950) return 1 + below(4096);
  if (dice < 9'998) return 1 + below(65'536);
  return 1 + below(400'000);
}

void Side::maybe_doze() {
  if (--until_mood_ == 0) {
    until_mood_ = 1 + below(8192);
    dozes_ = static_cast<int>(below(16));
  }
  if (dozes_ == 0) return;
  --dozes_;
  begin(Doing::dozing);
  std::this_thread::sleep_for(std::chrono::microseconds(below(150)));
}

void Side::count(std::size_t bytes, std::uint64_t sleeps) {
  position_ += bytes;
  progress_.operations.store(progress_.operations.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  progress_.bytes.store(position_, std::memory_order_relaxed);
  progress_.sleeps.store(sleeps, std::memory_order_relaxed);
}

void Side::poll(int descriptor) {
  begin(Doing::polling);
  pollfd polled{.fd = descriptor, .events = POLLIN, .revents = 0};
  ::poll(&polled, 1, -1);  // Without a timeout: a wake-up lost here is what the watchdog is for.
}

void Side::fail(const char* what, const Result& result) const {
  throw std::runtime_error(std::string(what)
                               .append(" at byte ")
                               .append(std::to_string(position_))
                               .append(", errno ")
                               .append(std::to_string(result.error)));
}

// Sending ------------------------------------------------------------------------------------------------------------

std::uint64_t Sending::run(std::uint64_t operations) {
  for (std::uint64_t i = 0; i < operations; ++i) {
    step();
    maybe_doze();
  }
  const Result result = stream_.finish_sending();
  if (!result.ok()) fail("finish_sending", result);
  begin(Doing::done);
  return position_;
}

void Sending::step() {
  const std::size_t size = random_size();
  switch (below(5)) {
    case 0:
      return send_blocking(size);
    case 1:
      return send_gathered(size);
    case 2:
      return write_in_place(size);
    default:
      return try_to_send(size);
  }
}

std::span<const std::byte> Sending::next(std::size_t size) {
  if (size <= Pattern::kMostInPlace) return pattern_.in_place(size, position_);
  large_.resize(size);
  pattern_.fill(large_, position_);
  return large_;
}

void Sending::accepted(const Result& result, std::size_t expected) {
  if (!result.ok() || result.bytes != expected) fail("send", result);
  count(result.bytes, stream_.counters().send_sleeps);
}

void Sending::send_blocking(std::size_t size) {
  begin(Doing::send);
  accepted(stream_.send(next(size)), size);
}

void Sending::send_gathered(std::size_t size) {
  begin(Doing::send);
  const auto bytes = next(size);
  std::array<iovec, 4> pieces{};
  std::size_t from = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::size_t n = i + 1 == pieces.size() ? size - from : below(size - from + 1);
    pieces[i] = {const_cast<std::byte*>(bytes.data()) + from, n};
    from += n;
  }
  if (below(2) == 0) return accepted(stream_.send(pieces), size);
  const Result result = stream_.try_send(pieces);
  if (result.failed()) fail("try_send", result);
  if (result.ok()) accepted(result, result.bytes);
}

/// One attempt, and if it was short one of the ways to wait; what was not taken is sent by whatever comes next.
void Sending::try_to_send(std::size_t size) {
  begin(Doing::try_send);
  const Result result = stream_.try_send(next(size));
  if (result.failed()) fail("try_send", result);
  if (result.ok()) accepted(result, result.bytes);
  if (result.bytes == size) return;
  const std::uint64_t way = below(4);
  if (way == 0) return;
  if (way == 1) {
    begin(Doing::waiting);
    if (!stream_.wait_writable(size).ok()) fail("wait_writable", result);
  } else {
    poll(stream_.send_descriptor());
  }
}

void Sending::write_in_place(std::size_t size) {
  begin(Doing::zero_copy);
  const Regions space = stream_.reserve(size);
  if (space.empty()) {
    begin(Doing::waiting);
    const Result writable = stream_.wait_writable(size);
    if (!writable.ok()) fail("wait_writable", writable);
    return;
  }
  const std::size_t n = 1 + below(space.size());
  pattern_.fill(space.first, position_);
  pattern_.fill(space.second, position_ + space.first.size());
  accepted(stream_.commit(n), n);
}

// Receiving ----------------------------------------------------------------------------------------------------------

std::uint64_t Receiving::run() {
  while (step()) maybe_doze();
  begin(Doing::done);
  return position_;
}

bool Receiving::step() {
  const std::size_t size = random_size();
  switch (below(6)) {
    case 0:
      return receive_blocking(size);
    case 1:
      return receive_scattered(size);
    case 2:
      return read_in_place(size);
    case 3:
      return receive_blocking(65'536);  // Keeps up with a sender of small messages.
    default:
      return try_to_receive(size);
  }
}

std::span<std::byte> Receiving::room(std::size_t size) {
  if (buffer_.size() < size) buffer_.resize(size);
  return {buffer_.data(), size};
}

bool Receiving::took(const Result& result, std::span<const std::byte> bytes) {
  if (result.ended()) return false;
  if (!result.ok() || result.bytes == 0) fail("receive", result);
  if (!pattern_.matches(bytes.first(result.bytes), position_)) fail("lost or altered bytes", result);
  count(result.bytes, stream_.counters().receive_sleeps);
  return true;
}

bool Receiving::receive_blocking(std::size_t size) {
  begin(Doing::receive);
  const auto buffer = room(size);
  return took(stream_.receive(buffer), buffer);
}

bool Receiving::receive_scattered(std::size_t size) {
  begin(Doing::receive);
  const auto buffer = room(size);
  const std::size_t cut = below(size + 1);
  const std::array<iovec, 3> pieces{iovec{buffer.data(), cut}, iovec{nullptr, 0},
                                    iovec{buffer.data() + cut, size - cut}};
  return took(stream_.receive(pieces), buffer);
}

bool Receiving::try_to_receive(std::size_t size) {
  begin(Doing::try_receive);
  const auto buffer = room(size);
  const Result result = stream_.try_receive(buffer);
  if (!result.would_block()) return took(result, buffer);
  const std::uint64_t way = below(4);
  if (way == 0) return true;
  if (way == 1) {
    begin(Doing::waiting);
    const Result readable = stream_.wait_readable();
    if (readable.failed()) fail("wait_readable", readable);
  } else {
    // The first call arms the descriptor; every attempt that would block arms it again.
    poll(stream_.receive_descriptor());
  }
  return true;
}

bool Receiving::read_in_place(std::size_t size) {
  begin(Doing::zero_copy);
  const Result readable = stream_.wait_readable();
  if (readable.ended()) return false;
  if (!readable.ok()) fail("wait_readable", readable);
  const ConstRegions bytes = stream_.peek(size);
  if (bytes.empty()) fail("peek saw nothing after wait_readable", readable);
  if (!pattern_.matches(bytes.first, position_) || !pattern_.matches(bytes.second, position_ + bytes.first.size())) {
    fail("lost or altered bytes in place", readable);
  }
  const std::size_t n = 1 + below(bytes.size());
  if (!stream_.consume(n).ok()) fail("consume", readable);
  count(n, stream_.counters().receive_sleeps);
  return true;
}

}  // namespace wherry::stress
