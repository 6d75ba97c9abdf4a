// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <random>
#include <string>
#include <utility>

#include "mailbox/impl.hpp"

namespace wherry {
namespace {

constexpr std::size_t kLeastHeader = 64;
constexpr std::size_t kMostHeader = 1024;
constexpr std::size_t kMostLane = std::size_t{1} << 30;
constexpr std::size_t kMostOverflow = std::size_t{1} << 30;
/// More descriptors than any process may have open.
constexpr std::size_t kMostPeers = 1 << 20;

mailbox::Lines lines_of(std::size_t bytes) {
  return static_cast<mailbox::Lines>(std::min<std::size_t>(bytes / layout::kMailboxLine, UINT32_MAX / 2));
}

MailboxOptions checked(const MailboxOptions& options) {
  const bool header =
      options.header >= kLeastHeader && options.header <= kMostHeader && options.header % layout::kMailboxLine == 0;
  const char* wrong = nullptr;
  if (!header) wrong = "a header is a multiple of 64 bytes, from 64 to 1024";
  if (options.budget < options.header) wrong = "the budget must hold a header";
  if (options.quiet % layout::kMailboxLine != 0 || options.quiet > options.header)
    wrong = "what quiet senders have is a multiple of 64 bytes, at most the header";
  if (options.lane % layout::kMailboxLine != 0 || options.lane > kMostLane)
    wrong = "a lane is a multiple of 64 bytes, at most 1 GiB";
  if (options.overflow % layout::kMailboxLine != 0 || options.overflow > kMostOverflow)
    wrong = "an overflow is a multiple of 64 bytes, at most 1 GiB";
  if (options.most_peers == 0 || options.most_peers > kMostPeers) wrong = "most_peers is from 1 to 1048576";
  if (wrong != nullptr) throw Error(EINVAL, "make a mailbox", "", wrong);
  return options;
}

std::uint64_t random_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) | 1;  // 0 means unknown
}

}  // namespace

Mailbox::Impl::Impl(const MailboxOptions& options)
    : number_(random_number()),
      header_(lines_of(checked(options).header)),
      quiet_header_(options.quiet == 0 ? header_ : lines_of(options.quiet)),
      lane_(lines_of(options.lane)),
      overflow_(options.overflow),
      most_peers_(options.most_peers),
      budget_(lines_of(options.budget)),
      layout_(options.layout),
      ledger_(budget_) {}

Mailbox::Impl::~Impl() {
  for (const auto& pair : pairs_) {
    if (pair == nullptr || (pair->connection == nullptr && pair->attempt == nullptr)) continue;
    // What other processes share is the parent's in a forked child.
    if (!origin_.inherited()) close(*pair);
  }
}

/// The peer receives everything sent so far, then the end.
void Mailbox::Impl::close(Pair& pair) noexcept {
  if (!pair.is_open()) return pair.early.end();
  pair.out->finish();
  pair.connection->flush();
}

std::size_t Mailbox::Impl::losses(std::span<Loss> into) noexcept {
  const std::size_t count = std::min(into.size(), losses_.size());
  std::copy_n(losses_.begin(), count, into.begin());
  losses_.erase(losses_.begin(), losses_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

void Mailbox::Impl::forget(Peer peer) noexcept {
  Pair* pair = find(peer);
  if (pair == nullptr) return;
  if (!origin_.inherited()) close(*pair);
  (void)lose(*pair, 0);
  std::erase(early_, pair);
  std::erase_if(losses_, [&](const Loss& loss) { return loss.peer == peer; });
  std::erase(writable_, peer);
  told_writable_ = std::min(told_writable_, writable_.size());
  pairs_[peer].reset();
}

Mailbox::Section Mailbox::Impl::section(Peer peer) const noexcept {
  const Pair* pair = find_open(peer);
  if (pair == nullptr) return {};
  return {pair->in->capacity(), pair->out->capacity(), pair->changes + pair->out->changes()};
}

bool Mailbox::Impl::reaches_private_memory(Peer peer) noexcept {
  const Pair* pair = find_open(peer);
  return pair != nullptr && pair->private_memory != nullptr && pair->private_memory->reachable();
}

std::size_t Mailbox::Impl::read_private(Peer peer, std::span<std::byte> destination, std::uint64_t address) noexcept {
  const Pair* pair = find_open(peer);
  return pair == nullptr || pair->private_memory == nullptr ? 0 : pair->private_memory->read(destination, address);
}

Mailbox::Mailbox(const MailboxOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Mailbox::Mailbox(Mailbox&&) noexcept = default;
Mailbox& Mailbox::operator=(Mailbox&&) noexcept = default;
Mailbox::~Mailbox() = default;

void Mailbox::listen(const Address& address) { impl_->listen(address); }
const Address& Mailbox::local() const noexcept { return impl_->local(); }
Mailbox::Peer Mailbox::connect(const Address& address, Timeout wait) { return impl_->connect(address, wait); }
std::string Mailbox::address_of(Peer peer) const { return impl_->address_of(peer); }
std::size_t Mailbox::peers() const noexcept { return impl_->peers(); }

Result Mailbox::try_send(Peer to, Outgoing& message) noexcept { return impl_->try_send(to, message); }
Result Mailbox::try_send(Peer to, std::span<const std::byte> message) noexcept { return impl_->try_send(to, message); }
Result Mailbox::try_send_whole(Peer to, Outgoing& message) noexcept { return impl_->try_send_whole(to, message); }
Result Mailbox::send(Peer to, Outgoing& message, Timeout timeout) noexcept { return impl_->send(to, message, timeout); }
Result Mailbox::send(Peer to, std::span<const std::byte> message, Timeout timeout) noexcept {
  const iovec piece{const_cast<std::byte*>(message.data()), message.size()};
  Outgoing outgoing{.pieces = std::span(&piece, 1), .bytes = message.size()};
  return impl_->send(to, outgoing, timeout);
}
std::size_t Mailbox::writable(std::span<Peer> into) noexcept { return impl_->writable(into); }

Result Mailbox::try_peek(Piece& piece) noexcept { return impl_->try_peek(piece); }
void Mailbox::consume(const Piece& piece, std::size_t bytes) noexcept { impl_->consume(piece, bytes); }
Result Mailbox::try_receive(std::span<std::byte> buffer, Peer& from) noexcept {
  return impl_->try_receive(buffer, from);
}
Result Mailbox::receive(std::span<std::byte> buffer, Peer& from, Timeout timeout) noexcept {
  return impl_->receive(buffer, from, timeout);
}

std::size_t Mailbox::losses(std::span<Loss> into) noexcept { return impl_->losses(into); }
void Mailbox::forget(Peer peer) noexcept { impl_->forget(peer); }

bool Mailbox::wait(Timeout timeout) noexcept { return impl_->wait(timeout); }
bool Mailbox::sleep(Timeout timeout) noexcept { return impl_->sleep(timeout); }
bool Mailbox::progress() noexcept { return impl_->progress(); }
void Mailbox::interrupt() noexcept { impl_->interrupt(); }
int Mailbox::descriptor() noexcept { return impl_->descriptor(); }

void Mailbox::set_layout(Layout layout) noexcept { impl_->set_layout(layout); }
void Mailbox::set_budget(std::size_t bytes) noexcept { impl_->set_budget(bytes); }
void Mailbox::set_neighbours(std::span<const Neighbour> neighbours) { impl_->set_neighbours(neighbours); }
void Mailbox::widen(Peer peer, bool wide) noexcept { impl_->widen(peer, wide); }
Mailbox::Section Mailbox::section(Peer peer) const noexcept { return impl_->section(peer); }

bool Mailbox::reaches_private_memory(Peer peer) noexcept { return impl_->reaches_private_memory(peer); }
std::size_t Mailbox::read_private(Peer peer, std::span<std::byte> destination, std::uint64_t address) noexcept {
  return impl_->read_private(peer, destination, address);
}

}  // namespace wherry
