// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/connection.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <new>
#include <utility>

#include "fabric/check.hpp"
#include "memory/arena.hpp"

namespace wherry::fabric::ofi {
namespace {

using Word = SendQueue::Word;

/// Exposed memory of the peer. Queued items keep its place alive.
class OfiRegion final : public memory::RemoteRegion {
 public:
  OfiRegion(std::shared_ptr<Link> link, std::shared_ptr<const RemotePlace> place, std::size_t bytes)
      : link_(std::move(link)), place_(std::move(place)), bytes_(bytes) {}

  bool has_room() override { return origin_.inherited() || link_->has_room(); }
  bool put(std::uint64_t offset, std::span<const std::byte> source) override {
    if (!in_range(offset, source.size(), bytes_)) return false;
    return source.empty() || push({.to = offset, .source = source});
  }
  bool get(std::span<std::byte> destination, std::uint64_t offset) override {
    if (!in_range(offset, destination.size(), bytes_)) return false;
    return destination.empty() || push({.to = offset, .into = destination});
  }
  bool signal(std::uint64_t offset, std::uint64_t value) override {
    return is_word(offset, bytes_) && push({.word = Word{offset, value, {}}});
  }

 private:
  bool push(Link::Item item) {
    item.keep = place_;
    return !origin_.inherited() && link_->push(std::move(item));
  }

  const std::shared_ptr<Link> link_;
  const std::shared_ptr<const RemotePlace> place_;
  const std::size_t bytes_;
  const Origin origin_;
};

}  // namespace

OfiConnection::OfiConnection(OwnSegment segment, std::shared_ptr<Link> link, Peer peer, bool exposes)
    : segment_(std::move(segment)), link_(std::move(link)), peer_(std::move(peer)), exposes_(exposes) {}

OfiConnection::~OfiConnection() {
  if (!origin_.inherited()) {
    link_->close();
  } else {
    // In a forked child the link's endpoint and locks are in the state of the parent at the fork. They are leaked.
    using Kept = std::shared_ptr<Link>;
    alignas(Kept) std::array<std::byte, sizeof(Kept)> never_destroyed;
    ::new (never_destroyed.data()) Kept(link_);
  }
}

std::size_t OfiConnection::put(std::uint64_t offset, std::span<const std::byte> source) {
  if (source.empty() || !in_range(offset, source.size(), remote_bytes()) || peer_gone()) return 0;
  return link_->put(offset, source);
}

bool OfiConnection::put_and_signal(std::uint64_t offset, std::span<const std::byte> source, std::uint64_t word,
                                   std::uint64_t value, Bell bell) {
  if (!in_range(offset, source.size(), remote_bytes()) || !is_word(word, remote_bytes()) || peer_gone()) return false;
  return link_->push({.to = offset, .source = source, .word = Word{word, value, bell}});
}

bool OfiConnection::get(std::span<std::byte> destination, std::uint64_t offset) {
  if (!in_range(offset, destination.size(), remote_bytes()) || peer_gone()) return false;
  return destination.empty() || link_->push({.to = offset, .into = destination});
}

bool OfiConnection::signal(std::uint64_t offset, std::uint64_t value, Bell bell) {
  if (!is_word(offset, remote_bytes()) || peer_gone()) return false;
  return link_->push({.word = Word{offset, value, bell}});
}

Result OfiConnection::flush(Deadline deadline) {
  return origin_.inherited() ? Result::failure(ECONNRESET) : link_->flush(deadline);
}

void OfiConnection::progress(Bell bell) {
  if (!origin_.inherited()) link_->drive(bell);
}

void OfiConnection::end_progress(Bell /*bell*/) {
  if (!origin_.inherited()) link_->end_drive(false);
}

void OfiConnection::arm(Bell bell) {
  if (origin_.inherited()) return;
  link_->end_drive(true);
  link_->bells().arm(bell);
}

void OfiConnection::disarm(Bell bell) {
  if (!origin_.inherited()) link_->bells().disarm(bell);
}

bool OfiConnection::silence(Bell bell) { return !origin_.inherited() && link_->bells().silence(bell); }

Wake OfiConnection::wait(Bell bell, Deadline deadline) {
  return origin_.inherited() ? Wake::gone : link_->wait(bell, deadline);
}

void OfiConnection::notify_self(Bell bell) {
  if (!origin_.inherited()) link_->bells().notify(bell);
}

std::shared_ptr<memory::LocalRegion> OfiConnection::expose(std::span<std::byte> memory) {
  if (!exposes_) refuse(peer_);
  return memory::Arena::instance().expose(memory);
}

std::shared_ptr<memory::RemoteRegion> OfiConnection::reach(const memory::RemoteKey& key, std::size_t bytes,
                                                           int& error) {
  error = ENXIO;
  if (origin_.inherited()) return nullptr;
  auto place = link_->reach(key, bytes, error);
  return place == nullptr ? nullptr : std::make_shared<OfiRegion>(link_, std::move(place), bytes);
}

}  // namespace wherry::fabric::ofi
