// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/net/driver.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "bench/harness/link.hpp"
#include "bench/systems/net/remote_rank.hpp"
#include "bench/systems/net/sample_frames.hpp"

namespace wherry::bench::net {
namespace {

/// A sample on the other host that fails ends by its own limit, at the latest.
constexpr std::chrono::seconds kMargin{10};

std::string environment(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Driver::Driver(const std::string& host, std::uint16_t port) : control_(host, port) { control_.greet(); }

std::string Driver::description() const {
  return fmt::format("between {} (receives) and {}", control_.peer_address(), control_.own_address());
}

std::string Driver::enter(std::uint32_t /*rank*/) {
  control_.end_process_with_it();
  return control_.peer_address();
}

Outcome Driver::run(LinkSystem& system, const Sample& sample) {
  const std::string name = fmt::format("wherry-bench-{}-{}", ::getpid(), ++number_);
  control_.send(
      {{"sample", number_},
       {"run",
        {{"system", system.name()}, {"sample", to_json(sample)}, {"name", name}, {"job", environment("WHERRY_JOB")}}}});
  OtherRank receiver(control_, number_, 0);
  SampleMemory shared(1, latencies_of(sample), 0, &receiver);
  std::string failure;
  try {
    run_ranks(system, sample, shared, std::array{1U}, name);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  try {
    finish(shared, sample);
  } catch (const std::exception& error) {
    // What ended first is not known: both reasons help.
    throw std::runtime_error(failure.empty() ? error.what() : fmt::format("{}; {}", error.what(), failure));
  }
  if (!failure.empty()) throw std::runtime_error(failure);
  return add_up(shared, sample);
}

void Driver::finish(SampleMemory& shared, const Sample& sample) const {
  control_.send({{"sample", number_}, {"end", true}});
  const auto limit = std::chrono::seconds(static_cast<std::int64_t>(sample.timeout_seconds)) + kMargin;
  for (;;) {
    const nlohmann::json frame = control_.receive(limit);
    if (frame.value("sample", std::uint64_t{0}) != number_ || !frame.contains("ended")) continue;
    const nlohmann::json& ended = frame.at("ended");
    if (ended.contains("failed")) throw std::runtime_error("the other host: " + ended.value("failed", "failed"));
    return store_result(ended.value("result", nlohmann::json::object()), shared, 0);
  }
}

}  // namespace wherry::bench::net
