// SPDX-License-Identifier: Apache-2.0
// The functions that make and end connections.
#include <algorithm>
#include <vector>

#include "adapters/scif/calls.hpp"
#include "adapters/scif/rendezvous.hpp"
#include "base/log.hpp"
#include "fabric/fabric.hpp"

using namespace wherry;
using namespace wherry::scif;

scif_epd_t scif_open() {
  return guarded([] {
    try {
      fabric::require_mapping("open an endpoint of SCIF");
    } catch (const Error& error) {
      log::write(log::Level::error, error.what());  // the program gets only the number
      throw;
    }
    return add(Endpoint::open());
  });
}

int scif_close(scif_epd_t epd) {
  return guarded([&] { return -close_descriptor(epd); });
}

int scif_bind(scif_epd_t epd, uint16_t pn) {
  return with_endpoint(epd, [&](Endpoint& endpoint) { return endpoint.bind(epd, pn); });
}

int scif_listen(scif_epd_t epd, int backlog) {
  return with_endpoint(epd, [&](Endpoint& endpoint) { return endpoint.listen(epd, backlog); });
}

int scif_connect(scif_epd_t epd, struct scif_portID* dst) {
  return with_endpoint(epd, [&](Endpoint& endpoint) {
    if (dst == nullptr) return -EINVAL;
    return is_readable(dst, 1) ? endpoint.connect(epd, *dst) : -EFAULT;
  });
}

int scif_accept(scif_epd_t epd, struct scif_portID* peer, scif_epd_t* newepd, int flags) {
  return with_endpoint(epd, [&](Endpoint& endpoint) {
    if ((flags & ~SCIF_ACCEPT_SYNC) != 0 || peer == nullptr || newepd == nullptr) return -EINVAL;
    if (!is_writable(peer, 1) || !is_writable(newepd, 1)) return -EFAULT;
    Opened accepted;
    scif_portID requester{};
    const int result = endpoint.accept(epd, requester, (flags & SCIF_ACCEPT_SYNC) != 0, accepted);
    if (result != 0) return result;
    *newepd = add(std::move(accepted));
    *peer = requester;
    return 0;
  });
}

int scif_get_fd(scif_epd_t epd) { return epd; }

int scif_get_nodeIDs(uint16_t* nodes, int len, uint16_t* self) {
  return guarded([&] {
    const std::uint16_t own = own_node();
    if (len < 0 || (nodes == nullptr && len > 0)) return -EINVAL;
    if (!is_writable(nodes, static_cast<std::size_t>(len)) || (self != nullptr && !is_writable(self, 1)))
      return -EFAULT;
    auto alive = named_sockets(own).nodes;
    alive.insert({0, own});  // the host is always there
    if (self != nullptr) *self = own;
    const std::vector<std::uint16_t> all(alive.begin(), alive.end());
    std::copy_n(all.begin(), std::min(all.size(), static_cast<std::size_t>(len)), nodes);
    return static_cast<int>(all.size());
  });
}
