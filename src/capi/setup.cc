// SPDX-License-Identifier: Apache-2.0
// wherry.h: listening and connecting.
#include <cerrno>

#include <wherry/wherry.h>

#include "capi/boundary.hpp"

namespace {

using wherry::capi::bad_options;
using wherry::capi::configurable_timeout_of;
using wherry::capi::copy_text;
using wherry::capi::destroy;
using wherry::capi::good;
using wherry::capi::missing_argument;
using wherry::capi::no_handle;
using wherry::capi::set_up;
using wherry::capi::timeout_of;

wherry::Listener* of(wherry_listener handle) { return static_cast<wherry::Listener*>(handle.impl); }
wherry::Connecting* of(wherry_connecting handle) { return static_cast<wherry::Connecting*>(handle.impl); }

/// Whether the options are valid. Unknown flags are invalid, so that a program learns that this library lacks a
/// feature.
bool good(const wherry_options* options) {
  return options == nullptr || ((options->flags & ~WHERRY_WINDOWS) == 0 && options->reserved == 0);
}
wherry::StreamOptions of(const wherry_options* options) {
  if (options == nullptr) return {};
  return {.ring_bytes = options->ring_bytes, .windows = (options->flags & WHERRY_WINDOWS) != 0};
}

int give(wherry::Stream&& stream, wherry_stream* place) {
  place->impl = new wherry::Stream(std::move(stream));
  return 0;
}

}  // namespace

int wherry_listen(const char* address, const struct wherry_options* options, wherry_listener* listener) {
  if (address == nullptr || listener == nullptr) return missing_argument();
  if (!good(options)) return bad_options();
  return set_up([&] {
    listener->impl = new wherry::Listener(wherry::listen(address, of(options)));
    return 0;
  });
}

int wherry_accept(wherry_listener listener, int64_t timeout_ns, wherry_stream* stream) {
  if (listener.impl == nullptr) return no_handle();
  if (stream == nullptr) return missing_argument();
  return set_up([&] {
    if (timeout_ns != 0) return give(of(listener)->accept(timeout_of(timeout_ns)), stream);
    auto accepted = of(listener)->try_accept();
    return accepted ? give(std::move(*accepted), stream) : -EAGAIN;
  });
}

int wherry_listener_descriptor(wherry_listener listener) {
  return listener.impl == nullptr ? no_handle() : of(listener)->descriptor();
}

int wherry_listener_address(wherry_listener listener, char* text, size_t size) {
  if (listener.impl == nullptr) return no_handle();
  if (!good(text, size)) return missing_argument();
  return set_up([&] { return copy_text(of(listener)->local().to_string(), text, size); });
}

void wherry_listener_close(wherry_listener listener) { destroy(of(listener)); }

int wherry_connect(const char* address, const struct wherry_options* options, int64_t timeout_ns,
                   wherry_stream* stream) {
  if (address == nullptr || stream == nullptr) return missing_argument();
  if (!good(options)) return bad_options();
  return set_up(
      [&] { return give(wherry::connect(address, of(options), configurable_timeout_of(timeout_ns)), stream); });
}

int wherry_start_connect(const char* address, const struct wherry_options* options, int64_t timeout_ns,
                         wherry_connecting* connecting) {
  if (address == nullptr || connecting == nullptr) return missing_argument();
  if (!good(options)) return bad_options();
  return set_up([&] {
    connecting->impl =
        new wherry::Connecting(wherry::start_connect(address, of(options), configurable_timeout_of(timeout_ns)));
    return 0;
  });
}

int wherry_try_finish(wherry_connecting connecting, wherry_stream* stream) {
  if (connecting.impl == nullptr) return no_handle();
  if (stream == nullptr) return missing_argument();
  return set_up([&] {
    auto connected = of(connecting)->try_finish();
    return connected ? give(std::move(*connected), stream) : -EAGAIN;
  });
}

int wherry_finish_connect(wherry_connecting connecting, int64_t timeout_ns, wherry_stream* stream) {
  if (connecting.impl == nullptr) return no_handle();
  if (stream == nullptr) return missing_argument();
  return set_up([&] { return give(of(connecting)->finish(configurable_timeout_of(timeout_ns)), stream); });
}

int wherry_connecting_descriptor(wherry_connecting connecting) {
  return connecting.impl == nullptr ? no_handle() : of(connecting)->descriptor();
}

void wherry_connecting_close(wherry_connecting connecting) { destroy(of(connecting)); }

int wherry_own_node(void) {
  return set_up([] { return static_cast<int>(wherry::own_node()); });
}
