// SPDX-License-Identifier: Apache-2.0
// wherry/poller.h: finds the streams that have something to receive.
#include <cerrno>
#include <span>

#include <wherry/wherry.h>
#include <wherry/poller.hpp>

#include "capi/boundary.hpp"

namespace {

using wherry::NotCancelled;
using wherry::Poller;
using wherry::Stream;
using wherry::capi::destroy;
using wherry::capi::good;
using wherry::capi::missing_argument;
using wherry::capi::no_handle;
using wherry::capi::set_up;
using wherry::capi::timeout_of;

Poller* of(wherry_poller handle) { return static_cast<Poller*>(handle.impl); }

/// Calls `call` with the poller.
template <class Call>
int with(wherry_poller handle, Call&& call) {
  if (handle.impl == nullptr) return no_handle();
  return set_up([&] {
    call(*of(handle));
    return 0;
  });
}

}  // namespace

int wherry_poller_open(wherry_poller* poller) {
  if (poller == nullptr) return missing_argument();
  return set_up([&] {
    poller->impl = new Poller();
    return 0;
  });
}

void wherry_poller_close(wherry_poller poller) { destroy(of(poller)); }

int wherry_poller_add(wherry_poller poller, wherry_stream stream, uint64_t token) {
  if (stream.impl == nullptr) return no_handle();
  return with(poller, [&](Poller& on) { on.add(*static_cast<Stream*>(stream.impl), token); });
}

int wherry_poller_remove(wherry_poller poller, wherry_stream stream) {
  if (stream.impl == nullptr) return no_handle();
  return with(poller, [&](Poller& on) { on.remove(*static_cast<Stream*>(stream.impl)); });
}

int wherry_poller_add_descriptor(wherry_poller poller, int descriptor, uint64_t token) {
  return with(poller, [&](Poller& on) { on.add(descriptor, token); });
}

int wherry_poller_remove_descriptor(wherry_poller poller, int descriptor) {
  return with(poller, [&](Poller& on) { on.remove(descriptor); });
}

int64_t wherry_poller_wait(wherry_poller poller, uint64_t* ready, size_t count, int64_t timeout_ns) {
  if (poller.impl == nullptr) return -EBADF;
  if (!good(ready, count)) return -EINVAL;
  const NotCancelled here;
  return static_cast<int64_t>(of(poller)->wait(std::span(ready, count), timeout_of(timeout_ns)));
}

int wherry_poller_interrupt(wherry_poller poller) {
  if (poller.impl == nullptr) return -EBADF;
  const NotCancelled here;
  of(poller)->interrupt();
  return 0;
}

int wherry_poller_descriptor(wherry_poller poller) {
  if (poller.impl == nullptr) return -EBADF;
  const NotCancelled here;
  return of(poller)->descriptor();
}
