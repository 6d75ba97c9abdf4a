// SPDX-License-Identifier: Apache-2.0
// The functions that make and end connections.
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "adapters/scif/calls.hpp"
#include "adapters/scif/ports.hpp"

using namespace wherry;
using namespace wherry::scif;

scif_epd_t scif_open() {
  return guarded([] {
    auto endpoint = Endpoint::open();
    const int descriptor = endpoint->descriptor();
    try {
      return add(std::move(endpoint));
    } catch (...) {
      ::close(descriptor);
      throw;
    }
  });
}

int scif_close(scif_epd_t epd) {
  return guarded([&] {
    const auto endpoint = remove(epd);
    // Closed behind our back: what the number means now is not ours to close.
    if (endpoint == nullptr || !endpoint->is_current()) return -what_is(epd);
    return ::close(epd) == 0 ? 0 : -errno;
  });
}

int scif_bind(scif_epd_t epd, uint16_t pn) {
  return with_endpoint(epd, [&](Endpoint& endpoint) { return endpoint.bind(pn); });
}

int scif_listen(scif_epd_t epd, int backlog) {
  return with_endpoint(epd, [&](Endpoint& endpoint) { return endpoint.listen(backlog); });
}

int scif_connect(scif_epd_t epd, struct scif_portID* dst) {
  return with_endpoint(epd, [&](Endpoint& endpoint) { return dst == nullptr ? -EINVAL : endpoint.connect(*dst); });
}

int scif_accept(scif_epd_t epd, struct scif_portID* peer, scif_epd_t* newepd, int flags) {
  return with_endpoint(epd, [&](Endpoint& endpoint) {
    if ((flags & ~SCIF_ACCEPT_SYNC) != 0 || peer == nullptr || newepd == nullptr) return -EINVAL;
    std::unique_ptr<Endpoint> accepted;
    scif_portID requester{};
    const int result = endpoint.accept(requester, (flags & SCIF_ACCEPT_SYNC) != 0, accepted);
    if (result != 0) return result;
    const int descriptor = accepted->descriptor();
    try {
      *newepd = add(std::move(accepted));
    } catch (...) {
      ::close(descriptor);
      throw;
    }
    *peer = requester;
    return 0;
  });
}

int scif_get_fd(scif_epd_t epd) { return epd; }

int scif_get_nodeIDs(uint16_t* nodes, int len, uint16_t* self) {
  return guarded([&] {
    const std::uint16_t own = own_node();
    if (len < 0 || (nodes == nullptr && len > 0)) return -EINVAL;
    auto alive = named_sockets(own).nodes;
    alive.insert({0, own});  // the host is there whenever somebody asks
    if (self != nullptr) *self = own;
    const std::vector<std::uint16_t> all(alive.begin(), alive.end());
    std::copy_n(all.begin(), std::min(all.size(), static_cast<std::size_t>(len)), nodes);
    return static_cast<int>(all.size());
  });
}
