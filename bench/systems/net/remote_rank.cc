// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/net/remote_rank.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace wherry::bench::net {

using nlohmann::json;

void OtherRank::meet(const Report& own, Report& other) {
  control_.send({{"sample", sample_}, {"barrier", {{"number", ++met_}, {"lap", own.lap}, {"warm_up", own.warm_up}}}});
  const json barrier = await("barrier").at("barrier");
  if (barrier.value("number", std::uint64_t{0}) != met_) {
    throw std::runtime_error("the other host is at another barrier: its link is of another kind");
  }
  other.lap = barrier.value("lap", std::uint64_t{0});
  other.warm_up = barrier.value("warm_up", std::uint64_t{0});
}

/// A note is bytes, which JSON cannot hold as they are.
void OtherRank::post(std::string_view bytes) {
  control_.send({{"sample", sample_}, {"note", std::vector<std::uint8_t>(bytes.begin(), bytes.end())}});
}

std::string OtherRank::read() {
  if (!note_) (void)await("note");
  return *note_;
}

json OtherRank::await(const char* member) {
  for (;;) {
    json frame = control_.receive();
    if (frame.value("sample", std::uint64_t{0}) != sample_) continue;
    if (frame.contains("failed")) throw std::runtime_error("the other host: " + frame.value("failed", "failed"));
    if (const auto note = frame.find("note"); note != frame.end()) {
      const auto bytes = note->get<std::vector<std::uint8_t>>();
      note_.emplace(bytes.begin(), bytes.end());
    }
    if (frame.contains(member)) return frame;
  }
}

}  // namespace wherry::bench::net
