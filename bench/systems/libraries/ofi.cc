// SPDX-License-Identifier: Apache-2.0
// libfabric: tagged messages of reliable datagram endpoints, providers shm and tcp.
#include <cstdlib>

#include "bench/systems/libraries/ofi_requests.hpp"

namespace wherry::bench {
namespace {

class Ofi final : public LinkSystem {
 public:
  explicit Ofi(const char* provider) : provider_(provider) {}
  [[nodiscard]] std::string name() const override { return std::string("ofi-") + provider_; }
  [[nodiscard]] std::string version() const override {
    return std::to_string(FI_MAJOR(fi_version())) + "." + std::to_string(FI_MINOR(fi_version()));
  }
  [[nodiscard]] std::string settings() const override {
    return "fi_tsend (fi_tinject up to the provider's size) and fi_trecv, window 64 up to 64 KB and 4 above "
           "(latency 1), looks without sleeping, gives way when there are more processes than cores, from sleep: "
           "fi_cq_sread";
  }
  [[nodiscard]] bool can(const Sample& sample) const override {
    // The shared-memory provider has no way to sleep; the other one buffers unexpected messages, 100 MB a sender.
    if (std::string_view(provider_) == "shm") return sample.question != Question::asleep;
    constexpr std::uint32_t kMostSenders = 16;
    return sample.senders <= kMostSenders;
  }
  std::unique_ptr<Link> open(const Place& place) override {
    // Looking for network cards would take longer than the sample.
    ::setenv("FI_PROVIDER", provider_, 1);
    return std::make_unique<WindowedLink<ofi::Requests>>(place, provider_);
  }

 private:
  const char* provider_;
};

}  // namespace
}  // namespace wherry::bench

extern "C" wherry::bench::Systems* wherry_bench_systems() {
  return wherry::bench::made_of<wherry::bench::Ofi>("shm", "tcp");
}
