// SPDX-License-Identifier: Apache-2.0
// The fabric between processes of one machine. It needs no daemon and no setup, and leaves nothing behind. See
// socket_names.hpp for how two processes meet, memory.hpp for what they share, connection.hpp for how they communicate.
#include "fabric/check.hpp"
#include "fabric/registry.hpp"
#include "fabric/shm/at_load.hpp"
#include "fabric/shm/connecting.hpp"
#include "fabric/shm/listener.hpp"

namespace wherry::fabric::shm {
namespace {

constexpr std::string_view kName = "shm";

[[maybe_unused]] const bool kPrepared = prepare_at_load();

class ShmFabric final : public Fabric {
 public:
  [[nodiscard]] std::string_view name() const override { return kName; }
  std::unique_ptr<Listener> listen(const Address& address) override { return std::make_unique<ShmListener>(address); }
  std::unique_ptr<Connecting> connect(const Address& address, const Offer& offer) override {
    check_target(address);
    check_offer("connect to", address, offer);
    return std::make_unique<ShmConnecting>(address, offer);
  }
  /// The request in the listener's queue contains the descriptor of the memory.
  [[nodiscard]] bool keeps_segments() const override { return true; }
  std::shared_ptr<memory::SharedMemory> share(std::size_t bytes) override {
    return std::make_shared<memory::SharedMemory>(bytes);
  }
};

}  // namespace
}  // namespace wherry::fabric::shm

namespace wherry::fabric {

void register_shm(Registry& registry) { registry.add(std::make_unique<shm::ShmFabric>()); }

}  // namespace wherry::fabric
