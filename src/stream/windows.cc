// SPDX-License-Identifier: Apache-2.0
// The public handle on a stream's windows: translation only.
#include <wherry/window.hpp>

#include <sys/mman.h>

#include <utility>

#include "window/space.hpp"

namespace wherry {
namespace {

static_assert(static_cast<int>(Access::read) == PROT_READ && static_cast<int>(Access::write) == PROT_WRITE);

window::RmaOptions of(const RmaOptions& options) { return {.complete = options.complete, .ordered = options.ordered}; }

std::optional<window::Signal> of(const std::optional<Signal>& signal) {
  if (!signal) return std::nullopt;
  return window::Signal{.offset = signal->offset, .value = signal->value};
}

Result result_of(int error, std::size_t bytes = 0) {
  return error == 0 ? Result::moved(bytes) : Result::failure(error);
}

const char* advice_for(int error) {
  switch (error) {
    case EINVAL:
      return "the size and the offset of a window must be multiples of the page size";
    case EFAULT:
      return "all of the memory must be mapped and readable";
    case EADDRINUSE:
      return "the offset has a window already, or is not below 2^62; use another, or omit it to have one chosen";
    case EBUSY:
      return "the peer still maps the window that was there; unmap it at the peer, or use another offset";
    case ENOMEM:
      return "a side has up to 4096 windows; register larger ones, or raise vm.max_map_count";
    case ENXIO:
      return "the peer has not registered all of that range";
    case EPERM:
      return "the peer's window does not allow that access";
    case ENOTSUP:
      return "this memory cannot be mapped; use read_from and write_to instead";
    default:
      return "the peer has closed or died, or its process is stopped";
  }
}

}  // namespace

MappedWindow& MappedWindow::operator=(MappedWindow&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedWindow::~MappedWindow() {
  if (!bytes_.empty()) window::unmap(bytes_.data(), bytes_.size());
}

std::uint64_t Windows::add(std::span<std::byte> memory, Access access, std::optional<std::uint64_t> offset) {
  const auto registered = space_->register_memory(memory, offset, static_cast<int>(access));
  if (registered.error == ENOTSUP) {
    throw Error(ENOTSUP, "register memory", "", "this is a forked child's copy of the stream; connect one of its own");
  }
  if (registered.error != 0) throw Error(registered.error, "register memory", "", advice_for(registered.error));
  return registered.offset;
}

Result Windows::remove(std::uint64_t offset, std::size_t bytes) noexcept {
  return result_of(space_->unregister(offset, bytes));
}

Result Windows::write_to(std::uint64_t local, std::size_t bytes, std::uint64_t remote, RmaOptions options) noexcept {
  return result_of(space_->write_to(local, bytes, remote, of(options)), bytes);
}

Result Windows::read_from(std::uint64_t local, std::size_t bytes, std::uint64_t remote, RmaOptions options) noexcept {
  return result_of(space_->read_from(local, bytes, remote, of(options)), bytes);
}

Result Windows::write_to(std::span<const std::byte> source, std::uint64_t remote, RmaOptions options) noexcept {
  return result_of(space_->write_to(source, remote, of(options)), source.size());
}

Result Windows::read_from(std::span<std::byte> destination, std::uint64_t remote, RmaOptions options) noexcept {
  return result_of(space_->read_from(destination, remote, of(options)), destination.size());
}

Mark Windows::mark(Started by) const noexcept {
  return {.by = by, .calls = space_->mark(by == Started::by_peer).calls};
}

Result Windows::wait(Mark mark, std::chrono::nanoseconds timeout) noexcept {
  return result_of(space_->wait({.of_peer = mark.by == Started::by_peer, .calls = mark.calls}, timeout));
}

Result Windows::signal(std::optional<Signal> local, std::optional<Signal> remote, Started by) noexcept {
  return result_of(space_->signal(by == Started::by_peer, of(local), of(remote)));
}

bool Windows::can_map() const noexcept { return space_->can_map(); }

MappedWindow Windows::map(std::uint64_t remote, std::size_t bytes, Access access) {
  const auto mapped = space_->map(nullptr, remote, bytes, static_cast<int>(access));
  if (mapped.error != 0) throw Error(mapped.error, "map a window", "", advice_for(mapped.error));
  return MappedWindow({mapped.start, bytes});
}

}  // namespace wherry
