// SPDX-License-Identifier: Apache-2.0
// The endpoints of this process by their descriptors. A descriptor that the program made itself (dup, dup2, F_DUPFD) is
// recognised by its socket when it is first used; an endpoint ends with the last descriptor of its socket.
#pragma once

#include <memory>
#include <utility>

#include "adapters/scif/endpoint.hpp"
#include "adapters/scif/endpoint_entry.hpp"

namespace wherry::scif {

/// An endpoint while a call uses it: it is not destroyed, nor its last descriptor closed by scif_close.
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

/// The endpoint that a descriptor is known to be of; it may be something else's meanwhile. Empty: none is known.
Use find(int fd);
/// Whether the program has made a descriptor of an endpoint itself. From then on what is known of a number is asked for
/// at each call (EndpointWaiter::is): it may have been closed and be another endpoint's a moment later, without the
/// library's hearing of either.
bool has_duplicates();
/// The endpoint that has this socket, as the kernel says. Empty: none. If it was the last descriptor of
/// another endpoint before, waits for the calls that use that: to be called without a Use.
Use find_by_socket(int fd);
/// Makes it known. What the number meant before is forgotten. Returns the descriptor.
int add(Opened opened);
/// Closes a descriptor. With the last one of its socket the endpoint ends: calls that sleep in it are woken and waited
/// for. Returns an errno value: EBADF or ENOTTY if it is of no endpoint.
int close_descriptor(int fd);
/// What is wrong with a descriptor that is of no endpoint: EBADF or ENOTTY.
int what_is(int fd);

}  // namespace wherry::scif
