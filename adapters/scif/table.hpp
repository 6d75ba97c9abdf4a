// SPDX-License-Identifier: Apache-2.0
// The endpoints of this process by their descriptors. A descriptor that the program made itself (dup, dup2, F_DUPFD) is
// recognized by its socket at its first use. An endpoint ends with the last descriptor of its socket.
#pragma once

#include <memory>
#include <utility>

#include "adapters/scif/endpoint.hpp"
#include "adapters/scif/endpoint_entry.hpp"

namespace wherry::scif {

/// Keeps an endpoint in use by a call: meanwhile it is not destroyed, and scif_close does not close its last
/// descriptor.
class Use {
 public:
  Use() = default;
  Use(EndpointEntry& entry, Endpoint* endpoint) : entry_(&entry), endpoint_(endpoint) {}
  Use(Use&& other) noexcept : entry_(other.entry_), endpoint_(std::exchange(other.endpoint_, nullptr)) {}
  Use& operator=(Use&& other) noexcept {
    std::swap(entry_, other.entry_);
    std::swap(endpoint_, other.endpoint_);
    return *this;
  }
  ~Use();
  explicit operator bool() const { return endpoint_ != nullptr; }
  Endpoint* operator->() const { return endpoint_; }
  Endpoint& operator*() const { return *endpoint_; }

 private:
  EndpointEntry* entry_ = nullptr;
  Endpoint* endpoint_ = nullptr;
};

/// Returns the endpoint that a descriptor is known to belong to, or nothing. The descriptor may be another file's
/// meanwhile.
Use find(int fd);
/// Whether the program has made a descriptor of an endpoint itself. From then on each call asks the kernel about its
/// descriptor (EndpointWaiter::is): it may have been closed and be another endpoint's a moment later, without the
/// library's knowledge.
bool has_duplicates();
/// Returns the endpoint that has the socket behind this descriptor, or nothing. Asks the kernel. If the descriptor was
/// the last one of another endpoint before, waits for the calls that use that. So the caller must not have a Use.
Use find_by_socket(int fd);
/// Enters an endpoint under its descriptor, whose former meaning is forgotten. Returns the descriptor.
int add(Opened opened);
/// Closes a descriptor. With the last one of its socket the endpoint ends: calls that sleep in it are woken and waited
/// for. Returns 0, or EBADF or ENOTTY if the descriptor is of no endpoint.
int close_descriptor(int fd);
/// Returns why a descriptor is of no endpoint: EBADF or ENOTTY.
int what_is(int fd);

}  // namespace wherry::scif
