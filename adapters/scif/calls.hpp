// SPDX-License-Identifier: Apache-2.0
// What all functions of the interface begin and end with.
#pragma once

#include <cerrno>
#include <exception>
#include <new>
#include <span>

#include <wherry/error.hpp>

#include "adapters/scif/table.hpp"
#include "base/not_cancelled.hpp"
#include "memory/populate.hpp"

namespace wherry::scif {

inline int failed(int error) {
  errno = error;
  return -1;
}

/// Runs `body`, which returns a result or a negative errno value. No exception leaves a C function, errno is kept on
/// success, and cancellation of the thread waits until the call returns, as in the driver's calls.
template <class Body>
int guarded(Body&& body) noexcept {
  const NotCancelled here;
  const int before = errno;
  int result = 0;
  try {
    result = static_cast<int>(body());
  } catch (const Error& error) {
    result = -error.code().value();
  } catch (const std::bad_alloc&) {
    result = -ENOMEM;
  } catch (const std::exception&) {
    result = -EIO;
  }
  if (result < 0) return failed(-result);
  errno = before;
  return result;
}

/// Calls `body` with the endpoint that has the socket behind the descriptor, or fails with EBADF or ENOTTY. For
/// descriptors that are unknown or no longer what they were: programs make and close some without the library's
/// knowledge.
template <class Body>
int with_endpoint_by_socket(scif_epd_t epd, Body&& body) {
  const Use endpoint = find_by_socket(epd);
  return endpoint ? body(*endpoint) : -what_is(epd);
}

/// Calls `body` with the endpoint of a descriptor, or fails with EBADF or ENOTTY.
template <class Body>
int with_endpoint(scif_epd_t epd, Body&& body) noexcept {
  return guarded([&] {
    {
      const Use endpoint = find(epd);
      if (endpoint && endpoint->waiter().is(epd)) return body(*endpoint);
    }
    return with_endpoint_by_socket(epd, body);
  });
}

/// The same for calls that should make no system call. The descriptor is checked only if `body` fails. So `body` must
/// look for the peer's end (EndpointWaiter::look_for_end).
template <class Body>
int with_endpoint_unasked(scif_epd_t epd, Body&& body) noexcept {
  if (has_duplicates()) return with_endpoint(epd, body);
  return guarded([&] {
    {
      const Use endpoint = find(epd);
      const int result = endpoint ? body(*endpoint) : -1;
      if (endpoint && (result >= 0 || endpoint->waiter().is(epd))) return result;
    }
    return with_endpoint_by_socket(epd, body);
  });
}

/// Whether the program's memory can be accessed.
template <class T>
bool is_readable(const T* start, std::size_t count) {
  return count == 0 || memory::is_there(std::as_bytes(std::span(start, count)), memory::Access::read);
}
template <class T>
bool is_writable(T* start, std::size_t count) {
  return count == 0 || memory::is_there(std::as_bytes(std::span(start, count)), memory::Access::write);
}

/// Gets the link of a connected endpoint, for calls that reach the peer. Returns 0, -ENOTCONN or -ECONNRESET.
inline int reachable(Endpoint& endpoint, scif_epd_t epd, Link*& link) {
  link = endpoint.link(epd);
  if (link == nullptr) return -ENOTCONN;
  return endpoint.waiter().ask_for_end(epd) ? -ECONNRESET : 0;
}

/// The same for with_endpoint_unasked(). The peer's end may be noticed a moment late.
inline int reachable_lately(Endpoint& endpoint, scif_epd_t epd, Link*& link) {
  link = endpoint.link(epd);
  if (link == nullptr) return -ENOTCONN;
  return endpoint.waiter().look_for_end(epd) ? -ECONNRESET : 0;
}

/// Makes the condition that ends a wait in window::Space: the peer is gone, or another thread closes this endpoint.
inline window::Space::GiveUp ended(Endpoint& endpoint, scif_epd_t epd) {
  return [&waiter = endpoint.waiter(), epd] { return waiter.sleepers().woken() || waiter.look_for_end(epd); };
}
inline int waited(int error) { return error == ECANCELED ? ECONNRESET : error; }

/// Converts the errno value of a window::Space call that reaches the peer's windows to a result. A peer that closes has
/// no windows once its socket is closed. If a peer is killed, its memory goes first and its descriptors a little later.
inline int result_of(Endpoint& endpoint, scif_epd_t epd, int error) {
  constexpr int kDying = 1000;  // ms: the kernel frees the memory of a process before it closes its sockets
  const bool may_be_the_end = error == ENXIO || error == EFAULT;
  const bool ended = may_be_the_end && endpoint.waiter().ends_within(epd, error == EFAULT ? kDying : 0);
  return ended ? -ECONNRESET : -waited(error);
}

}  // namespace wherry::scif
