// SPDX-License-Identifier: Apache-2.0
#include "ship/results.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <stdexcept>
#include <utility>

#include "base/printable.hpp"
#include "base/readable.hpp"

namespace wherry::tools {

using layout::ShipAnswer;
using layout::ShipResult;

Results::Results(Channel& channel, std::function<void(std::string, std::string)> refused)
    : channel_(channel), on_refused_(std::move(refused)), thread_([this] { listen(); }) {}

Results::~Results() {
  if (!thread_.joinable()) return;
  channel_.cancel();
  thread_.join();
}

std::string Results::wait(std::uint64_t last_id) {
  thread_.join();
  if (!problem_.empty()) return problem_;
  if (!summary_) return "the collector ended before it confirmed all paths; see the collector's messages";
  if (settled() != last_id) return "the collector did not confirm all paths; see the collector's messages";
  return {};
}

void Results::listen() {
  try {
    read_all();
  } catch (const std::exception& error) {
    problem_ = error.what();
  }
  // The sending thread may sleep until the collector makes space, which a collector that is gone never does.
  if (!summary_) channel_.cancel();
}

void Results::read_all() {
  while (!summary_) {
    ShipResult result;
    const std::size_t got = channel_.read(std::as_writable_bytes(std::span(&result, 1)));
    if (got == 0) return;
    if (got < sizeof result || result.version != layout::kShipVersion) {
      throw std::runtime_error("the listener is not 'wherry collect' of this release");
    }
    std::string path = read_text(result.path_bytes, layout::kShipMaxPath);
    std::string message = read_text(result.message_bytes, layout::kShipMaxMessage);
    if (!take(result, std::move(path), std::move(message)))
      throw std::runtime_error("the collector's answer is invalid");
  }
}

bool Results::take(const ShipResult& result, std::string path, std::string message) {
  switch (static_cast<ShipAnswer>(result.answer)) {
    case ShipAnswer::stored:
      settled_ = result.id;
      return true;
    case ShipAnswer::refused:
      last_refused_ = result.id;
      on_refused_(std::move(path), std::move(message));
      return true;
    case ShipAnswer::summary:
      settled_ = result.id;
      summary_ = true;
      if (result.error != 0) problem_ = fmt::format("the collector ended the session: {}", printable(message));
      return true;
  }
  return false;
}

std::string Results::read_text(std::size_t bytes, std::size_t limit) {
  std::string text(bytes <= limit ? bytes : 0, '\0');
  if (bytes > limit || channel_.read(std::as_writable_bytes(std::span(text))) < bytes) {
    throw std::runtime_error("the collector's answer is invalid");
  }
  return text;
}

}  // namespace wherry::tools
