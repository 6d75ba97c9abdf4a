// SPDX-License-Identifier: Apache-2.0
#include "channel/channel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/config.hpp"

namespace wherry::tools {
namespace {

using namespace std::chrono_literals;

bool is_tcp(const std::string& address) { return address.starts_with(kTcpScheme); }

/// The time `duration` from now, or the clock's maximum.
std::chrono::steady_clock::time_point after(std::chrono::duration<double> duration) {
  constexpr std::chrono::duration<double> kYear = 24h * 365;
  return time_after(std::chrono::ceil<std::chrono::milliseconds>(std::min(duration, kYear)));
}

}  // namespace

void Channel::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> place = space();
    const std::size_t piece = std::min(place.size(), bytes.size());
    std::memcpy(place.data(), bytes.data(), piece);
    wrote(piece);
    bytes = bytes.subspan(piece);
  }
}

std::size_t Channel::read(std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t piece = read_some(bytes.subspan(done));
    if (piece == 0) break;
    done += piece;
  }
  return done;
}

std::size_t Channel::read_some(std::span<std::byte> bytes) {
  const std::span<const std::byte> arrived = peek(kForever);
  const std::size_t piece = std::min(arrived.size(), bytes.size());
  if (piece == 0) return 0;
  std::memcpy(bytes.data(), arrived.data(), piece);
  took(piece);
  return piece;
}

std::unique_ptr<ChannelListener> listen_channel(const std::string& address) {
  return is_tcp(address) ? listen_tcp(address) : listen_stream(address);
}

std::unique_ptr<Channel> connect_channel(const std::string& program, const std::string& address,
                                         std::chrono::duration<double> wait) {
  WaitNotice notice(program, address);
  if (is_tcp(address)) return connect_tcp(address, after(wait), notice);
  // A listener may exist and be too busy to accept.
  const std::chrono::milliseconds least(config::number(config::Key::connect_timeout));
  return connect_stream(address, after(wait), after(std::max<std::chrono::duration<double>>(wait, least)), notice);
}

}  // namespace wherry::tools
