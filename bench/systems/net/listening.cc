// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/net/listening.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "bench/harness/campaign.hpp"
#include "bench/harness/link.hpp"
#include "bench/systems/net/control_connection.hpp"
#include "bench/systems/net/remote_rank.hpp"
#include "bench/systems/net/sample_frames.hpp"

namespace wherry::bench::net {
namespace {

using nlohmann::json;

LinkSystem& find(const Registry& registry, const std::string& name) {
  for (const auto& system : registry.systems) {
    auto* const found = dynamic_cast<LinkSystem*>(system.get());
    if (found != nullptr && found->question() == kQuestion && found->name() == name) return *found;
  }
  throw std::runtime_error(name + " is not on this host; install the same parts of Wherry on both");
}

/// The samples of one driver.
class Driven {
 public:
  Driven(const Registry& registry, const ControlConnection& control) : registry_(registry), control_(control) {}

  /// Returns the answer to the end of a sample: what rank 0 measured, or why it could not.
  [[nodiscard]] json take(std::uint64_t number, const json& run) const {
    try {
      return {{"result", measured(number, run)}};
    } catch (const std::exception& error) {
      // The other rank may wait for this one.
      control_.send({{"sample", number}, {"failed", error.what()}});
      return {{"failed", error.what()}};
    }
  }

 private:
  [[nodiscard]] json measured(std::uint64_t number, const json& run) const {
    LinkSystem& system = find(registry_, run.value("system", ""));
    const Sample sample = sample_of(run.value("sample", json::object()));
    fmt::print(stderr, "wherry bench net: {}, {}\n", system.name(), describe(sample));
    ::setenv("WHERRY_JOB", run.value("job", "").c_str(), 1);
    OtherRank sender(control_, number, 1);
    SampleMemory shared(1, latencies_of(sample), 0, &sender);
    run_ranks(system, sample, shared, std::array{0U}, run.value("name", ""));
    return result_of(shared, 0);
  }

  const Registry& registry_;
  const ControlConnection& control_;
};

}  // namespace

ListeningHost::ListeningHost(std::uint16_t port) : listener_(port), port_(port) {}

void ListeningHost::serve(const Registry& registry) {
  fmt::print(stderr, "wherry bench net: waiting at TCP port {} for `wherry bench net --connect HOST`\n", port_);
  for (;;) {
    try {
      driver_.emplace(listener_.accept());
      fmt::print(stderr, "wherry bench net: {} connects\n", driver_->peer_address());
      serve_driver(registry);
    } catch (const std::exception& error) {
      fmt::print(stderr, "wherry bench net: {}\n", error.what());
    }
  }
}

void ListeningHost::serve_driver(const Registry& registry) const {
  driver_->greet();
  const Driven driven(registry, *driver_);
  json answer;
  std::uint64_t number = 0;
  for (;;) {
    const json frame = driver_->receive();
    if (frame.contains("run")) {
      number = frame.value("sample", std::uint64_t{0});
      answer = driven.take(number, frame.at("run"));
    } else if (frame.contains("end") && frame.value("sample", std::uint64_t{0}) == number) {
      driver_->send({{"sample", number}, {"ended", answer}});
    }
  }
}

Outcome ListeningHost::run(LinkSystem& /*system*/, const Sample& /*sample*/) {
  throw std::logic_error("the program that connects takes the samples");
}

std::string ListeningHost::enter(std::uint32_t /*rank*/) {
  driver_->end_process_with_it();
  return driver_->own_address();
}

}  // namespace wherry::bench::net
