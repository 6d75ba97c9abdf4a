// SPDX-License-Identifier: Apache-2.0
// What every function of the interface begins and ends with.
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

/// `body` returns a result, or an errno value negated. No exception leaves a C function, success leaves errno alone,
/// and the cancellation of its thread waits until it returns, as in the driver's calls.
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
/// descriptors that are not known, or no longer what they were: programs make and close some without telling the
/// library.
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

/// The same for calls that are to cost no system call: whether the descriptor still is the endpoint's is asked only
/// when `body` fails, and it is to look for the end (EndpointWaiter::look_for_end).
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

/// The link of a connected endpoint, for calls that reach the peer: -ENOTCONN and -ECONNRESET otherwise.
inline int reachable(Endpoint& endpoint, scif_epd_t epd, Link*& link) {
  link = endpoint.link(epd);
  if (link == nullptr) return -ENOTCONN;
  return endpoint.waiter().ask_for_end(epd) ? -ECONNRESET : 0;
}

/// The same for with_endpoint_unasked: as it was a moment ago.
inline int reachable_lately(Endpoint& endpoint, scif_epd_t epd, Link*& link) {
  link = endpoint.link(epd);
  if (link == nullptr) return -ENOTCONN;
  return endpoint.waiter().look_for_end(epd) ? -ECONNRESET : 0;
}

/// Ends a wait for the peer in window::Space: it is gone, or another thread closes this endpoint.
inline window::Space::GiveUp ended(Endpoint& endpoint, scif_epd_t epd) {
  return [&waiter = endpoint.waiter(), epd] { return waiter.sleepers().woken() || waiter.look_for_end(epd); };
}
inline int waited(int error) { return error == ECANCELED ? ECONNRESET : error; }

/// What a call of window::Space that reaches the peer's windows comes to, given its errno value. A peer that closes has
/// no windows any more once its socket is closed. Of one that is killed the memory goes first, and the descriptors a
/// little later.
inline int result_of(Endpoint& endpoint, scif_epd_t epd, int error) {
  constexpr int kDying = 1000;  // ms: the kernel frees the memory of a process before it closes its sockets
  const bool may_be_the_end = error == ENXIO || error == EFAULT;
  const bool ended = may_be_the_end && endpoint.waiter().ends_within(epd, error == EFAULT ? kDying : 0);
  return ended ? -ECONNRESET : -waited(error);
}

}  // namespace wherry::scif
