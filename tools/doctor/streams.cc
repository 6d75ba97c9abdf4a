// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <wherry/wherry.hpp>

#include "base/config.hpp"
#include "base/printable.hpp"
#include "base/readable.hpp"
#include "doctor/check.hpp"
#include "doctor/echo.hpp"
#include "fabric/fabric.hpp"

namespace wherry::tools::doctor {
namespace {

using std::chrono::steady_clock;

constexpr auto kCallTimeout = std::chrono::seconds(5);

// Returns the name of a variable if it begins with WHERRY_, else an empty text.
std::string_view own_variable(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  return name.starts_with("WHERRY_") ? name : std::string_view();
}

bool is_option(std::string_view variable) {
  return std::ranges::any_of(config::options(), [&](const config::Option& row) { return row.environment == variable; });
}

std::string unknown_variables() {
  std::string unknown;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name = own_variable(*entry);
    if (name.empty() || is_option(name)) continue;
    unknown += (unknown.empty() ? "" : ", ") + printable(name);
  }
  return unknown;
}

std::string invalid_settings() {
  std::string invalid;
  for (const config::Option& row : config::options()) {
    try {
      config::check(row.key);
    } catch (const Error& error) {
      invalid += (invalid.empty() ? "" : "; ") + fmt::format("{}: {}", printable(error.address()), error.advice());
    }
  }
  return invalid;
}

// Checks the bytes moved, not the status: the result may already report that the peer left after it took all bytes.
void require(Result result, std::size_t bytes, const char* what) {
  if (result.bytes == bytes) return;
  if (result.failed()) throw Error(result.error, what, "", "");
  throw std::runtime_error(std::string(what) + " moved too little");
}

// The connecting side: sends a payload and expects it back. Returns the time when it was connected.
steady_clock::time_point connect_and_echo(Connecting& attempt) {
  Stream stream = attempt.finish(kCallTimeout);
  const auto connected = steady_clock::now();
  std::array<std::byte, kEchoBytes> sent{};
  sent.fill(std::byte{0x5a});
  std::array<std::byte, kEchoBytes> received{};
  require(stream.send(sent, kCallTimeout), kEchoBytes, "send");
  require(stream.receive_all(received, kCallTimeout), kEchoBytes, "receive");
  if (sent != received) throw std::runtime_error("the bytes that came back are not those that were sent");
  // If this side left first, the other side would see a failure of its last send.
  if (!stream.receive(received, kCallTimeout).ended()) throw std::runtime_error("the stream did not end when closed");
  return connected;
}

void accept_and_echo(Listener& listener) {
  Stream stream = listener.accept(kCallTimeout);
  std::array<std::byte, kEchoBytes> payload{};
  require(stream.receive_all(payload, kCallTimeout), kEchoBytes, "receive");
  require(stream.send(payload, kCallTimeout), kEchoBytes, "send");
}

}  // namespace

Finding check_settings() {
  if (const std::string invalid = invalid_settings(); !invalid.empty()) {
    return {Verdict::fail, invalid, "wherry config --json shows the allowed values"};
  }
  if (const std::string unknown = unknown_variables(); !unknown.empty()) {
    return {Verdict::warn, unknown + ": no such option", "unset it; wherry config lists the options"};
  }
  return {Verdict::ok, "every WHERRY_* variable is valid", ""};
}

double echo_with_itself(const std::string& address) {
  Listener listener = listen(address);
  const auto start = steady_clock::now();
  // If one side cannot create a resource, this call reports it at once. The listener would only time out later.
  Connecting attempt = start_connect(listener.local().to_string(), {}, kCallTimeout);
  auto connecting = std::async(std::launch::async, [&attempt] { return connect_and_echo(attempt); });
  accept_and_echo(listener);
  return std::chrono::duration<double, std::micro>(connecting.get() - start).count();
}

Finding check_stream() {
  try {
    const double took = echo_with_itself("wherry://*:*");
    return {Verdict::ok,
            fmt::format("over {}: connected in {:.0f} us, {} bytes there and back", fabric::configured_name(), took,
                        kEchoBytes),
            ""};
  } catch (const std::exception& error) {
    return {Verdict::fail, printable(error.what()), "see the other checks that are not OK"};
  }
}

}  // namespace wherry::tools::doctor
