// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/sockets/descriptor_links.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "bench/harness/check.hpp"

namespace wherry::bench {

DescriptorLink::DescriptorLink(UniqueFd in, UniqueFd out, std::size_t size, std::vector<UniqueFd> idle)
    : in_(std::move(in)), out_(std::move(out)), idle_(std::move(idle)), out_buffer_(size), in_buffer_(size) {}

void DescriptorLink::send() {
  std::span<const std::byte> bytes = out_buffer_.span();
  while (!bytes.empty()) {
    const ssize_t n = ::write(out_.get(), bytes.data(), bytes.size());
    check(n > 0 || errno == EINTR, "write");
    if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

std::span<const std::byte> DescriptorLink::receive() {
  std::span<std::byte> rest = in_buffer_.span();
  while (!rest.empty()) {
    const ssize_t n = ::read(in_.get(), rest.data(), rest.size());
    if (n == 0) throw std::runtime_error("the sender is gone");
    check(n > 0 || errno == EINTR, "read");
    if (n > 0) rest = rest.subspan(static_cast<std::size_t>(n));
  }
  return in_buffer_.span();
}

ManyDescriptorsLink::ManyDescriptorsLink(std::vector<UniqueFd> descriptors, std::size_t size)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  check(epoll_.valid(), "epoll_create1");
  for (UniqueFd& descriptor : descriptors) {
    check(::fcntl(descriptor.get(), F_SETFL, O_NONBLOCK) == 0, "fcntl");
    Sender& sender = senders_.emplace_back(std::move(descriptor), size);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &sender}};
    check(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, sender.descriptor.get(), &event) == 0, "epoll_ctl");
  }
}

std::span<std::byte> ManyDescriptorsLink::prepare() { throw std::logic_error("this end only receives"); }
void ManyDescriptorsLink::send() { throw std::logic_error("this end only receives"); }

bool ManyDescriptorsLink::Sender::read_some() {
  if (filled == buffer.size()) filled = 0;
  const std::span<std::byte> rest = buffer.span().subspan(filled);
  const ssize_t n = ::read(descriptor.get(), rest.data(), rest.size());
  if (n == 0) throw std::runtime_error("a sender is gone");
  check(n > 0 || errno == EAGAIN || errno == EINTR, "read");
  if (n > 0) filled += static_cast<std::size_t>(n);
  return filled == buffer.size();
}

std::span<const std::byte> ManyDescriptorsLink::receive() {
  while (true) {
    while (next_ < ready_) {
      Sender& sender = *static_cast<Sender*>(events_[next_++].data.ptr);
      if (sender.read_some()) return sender.buffer.span();
    }
    const int ready = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), -1);
    check(ready > 0 || errno == EINTR, "epoll_wait");
    next_ = 0;
    ready_ = ready > 0 ? static_cast<std::size_t>(ready) : 0;
  }
}

}  // namespace wherry::bench
