// SPDX-License-Identifier: Apache-2.0
// wherry.h: windows.
#include <cerrno>
#include <optional>
#include <span>

#include <wherry/wherry.h>

#include "capi/boundary.hpp"
#include "window/space.hpp"

namespace {

using wherry::Access;
using wherry::Started;
using wherry::Windows;
using wherry::capi::configurable_timeout_of;
using wherry::capi::error_of;
using wherry::capi::set_up;

static_assert(WHERRY_READ == static_cast<int>(Access::read) && WHERRY_WRITE == static_cast<int>(Access::write));

/// Calls `call` with the stream's windows.
template <class Call>
int with_windows(wherry_stream stream, Call&& call) {
  if (stream.impl == nullptr) return -EBADF;
  return set_up([&] { return call(static_cast<wherry::Stream*>(stream.impl)->windows()); });
}

bool good_access(int access) { return access > 0 && access <= (WHERRY_READ | WHERRY_WRITE); }
bool good_flags(int flags) { return (flags & ~(WHERRY_COMPLETE | WHERRY_ORDERED)) == 0; }
bool good_side(int whose) { return whose == WHERRY_STARTED_HERE || whose == WHERRY_STARTED_BY_PEER; }

wherry::RmaOptions options_of(int flags) {
  return {.complete = (flags & WHERRY_COMPLETE) != 0, .ordered = (flags & WHERRY_ORDERED) != 0};
}
Started side_of(int whose) { return whose == WHERRY_STARTED_HERE ? Started::here : Started::by_peer; }

std::optional<wherry::Signal> signal_of(const wherry_signal* signal) {
  if (signal == nullptr) return std::nullopt;
  return wherry::Signal{.offset = signal->offset, .value = signal->value};
}

}  // namespace

int wherry_register(wherry_stream stream, void* memory, size_t size, int access, int64_t at, uint64_t* offset) {
  if (memory == nullptr || offset == nullptr || !good_access(access) || at < WHERRY_ANYWHERE) return -EINVAL;
  return with_windows(stream, [&](Windows windows) {
    std::optional<std::uint64_t> wanted;
    if (at != WHERRY_ANYWHERE) wanted = static_cast<std::uint64_t>(at);
    *offset = windows.add({static_cast<std::byte*>(memory), size}, static_cast<Access>(access), wanted);
    return 0;
  });
}

int wherry_unregister(wherry_stream stream, uint64_t offset, size_t size) {
  return with_windows(stream, [&](Windows windows) { return error_of(windows.remove(offset, size)); });
}

int wherry_write_to(wherry_stream stream, uint64_t local, size_t size, uint64_t remote, int flags) {
  if (!good_flags(flags)) return -EINVAL;
  return with_windows(
      stream, [&](Windows windows) { return error_of(windows.write_to(local, size, remote, options_of(flags))); });
}

int wherry_read_from(wherry_stream stream, uint64_t local, size_t size, uint64_t remote, int flags) {
  if (!good_flags(flags)) return -EINVAL;
  return with_windows(
      stream, [&](Windows windows) { return error_of(windows.read_from(local, size, remote, options_of(flags))); });
}

int wherry_vwrite_to(wherry_stream stream, const void* source, size_t size, uint64_t remote, int flags) {
  if (source == nullptr || !good_flags(flags)) return -EINVAL;
  const std::span bytes(static_cast<const std::byte*>(source), size);
  return with_windows(stream,
                      [&](Windows windows) { return error_of(windows.write_to(bytes, remote, options_of(flags))); });
}

int wherry_vread_from(wherry_stream stream, void* destination, size_t size, uint64_t remote, int flags) {
  if (destination == nullptr || !good_flags(flags)) return -EINVAL;
  const std::span bytes(static_cast<std::byte*>(destination), size);
  return with_windows(stream,
                      [&](Windows windows) { return error_of(windows.read_from(bytes, remote, options_of(flags))); });
}

int wherry_fence_mark(wherry_stream stream, int whose, uint64_t* mark) {
  if (mark == nullptr || !good_side(whose)) return -EINVAL;
  return with_windows(stream, [&](Windows windows) {
    *mark = windows.mark(side_of(whose)).calls;
    return 0;
  });
}

int wherry_fence_wait(wherry_stream stream, int whose, uint64_t mark, int64_t timeout_ns) {
  if (!good_side(whose)) return -EINVAL;
  return with_windows(stream, [&](Windows windows) {
    const wherry::Mark until{.by = side_of(whose), .calls = mark};
    const wherry::Timeout timeout = configurable_timeout_of(timeout_ns);
    return error_of(timeout ? windows.wait(until, *timeout) : windows.wait(until));
  });
}

int wherry_fence_signal(wherry_stream stream, int whose, const struct wherry_signal* local,
                        const struct wherry_signal* remote) {
  if (!good_side(whose)) return -EINVAL;
  return with_windows(stream, [&](Windows windows) {
    return error_of(windows.signal(signal_of(local), signal_of(remote), side_of(whose)));
  });
}

int wherry_map(wherry_stream stream, uint64_t remote, size_t size, int access, void** start) {
  if (start == nullptr || !good_access(access)) return -EINVAL;
  return with_windows(stream, [&](Windows windows) {
    *start = windows.map(remote, size, static_cast<Access>(access)).release().data();
    return 0;
  });
}

int wherry_unmap(void* start, size_t size) { return wherry::window::unmap(start, size) == 0 ? 0 : -errno; }
