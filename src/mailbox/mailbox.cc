// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "mailbox/impl.hpp"

namespace wherry {
namespace {

constexpr std::size_t kLeastHeader = 64;
constexpr std::size_t kMostHeader = 1024;
constexpr std::size_t kMostLane = std::size_t{1} << 30;
constexpr std::size_t kMostOverflow = std::size_t{1} << 30;
/// More descriptors than any process may have open.
constexpr std::size_t kMostPeers = 1 << 20;

MailboxOptions checked(const MailboxOptions& options) {
  const bool header =
      options.header >= kLeastHeader && options.header <= kMostHeader && options.header % layout::kMailboxLine == 0;
  const char* wrong = nullptr;
  if (!header) wrong = "header must be a multiple of 64 bytes, from 64 to 1024";
  if (options.budget < options.header) wrong = "budget must be at least the header";
  if (options.quiet % layout::kMailboxLine != 0 || options.quiet > options.header)
    wrong = "quiet must be a multiple of 64 bytes, at most the header";
  if (options.lane % layout::kMailboxLine != 0 || options.lane > kMostLane)
    wrong = "lane must be a multiple of 64 bytes, at most 1 GiB";
  if (options.overflow % layout::kMailboxLine != 0 || options.overflow > kMostOverflow)
    wrong = "overflow must be a multiple of 64 bytes, at most 1 GiB";
  if (options.most_peers == 0 || options.most_peers > kMostPeers) wrong = "most_peers must be from 1 to 1048576";
  if (wrong != nullptr) throw Error(EINVAL, "make a mailbox", "", wrong);
  return options;
}

}  // namespace

Mailbox::Impl::Impl(const MailboxOptions& options)
    : early(pairs, options.overflow),
      sections(pairs, checked(options)),
      connector(pairs, early, write_interest, bells, sections, options),
      engine(pairs, write_interest, bells, sections, connector),
      waiter(pairs, early, write_interest, bells, engine),
      sender(pairs, write_interest, connector, engine, waiter),
      receiver(pairs, early, write_interest, bells, sections, engine, waiter) {}

Mailbox::Mailbox(const MailboxOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Mailbox::Mailbox(Mailbox&&) noexcept = default;
Mailbox& Mailbox::operator=(Mailbox&&) noexcept = default;
Mailbox::~Mailbox() = default;

void Mailbox::listen(const Address& address) { impl_->connector.listen(address); }
const Address& Mailbox::local() const noexcept { return impl_->connector.local(); }
Mailbox::Peer Mailbox::connect(const Address& address, Timeout wait) { return impl_->connector.connect(address, wait); }
std::string Mailbox::address_of(Peer peer) const {
  const mailbox::Pair* pair = impl_->pairs.find(peer);
  return pair == nullptr || !pair->address ? std::string() : pair->address->to_string();
}
std::size_t Mailbox::peers() const noexcept { return impl_->pairs.living(); }

std::size_t Mailbox::losses(std::span<Loss> into) noexcept { return impl_->pairs.take_losses(into); }
void Mailbox::forget(Peer peer) noexcept { impl_->connector.forget(peer); }

void Mailbox::set_layout(Layout layout) noexcept { impl_->sections.set_layout(layout); }
void Mailbox::set_budget(std::size_t bytes) noexcept { impl_->sections.set_budget(bytes); }
void Mailbox::set_neighbours(std::span<const Neighbour> neighbours) { impl_->sections.set_neighbours(neighbours); }
void Mailbox::widen(Peer peer, bool wide) noexcept {
  if (mailbox::Pair* pair = impl_->pairs.find_open(peer)) impl_->sections.widen(*pair, wide);
}

Mailbox::Section Mailbox::section(Peer peer) const noexcept {
  const mailbox::Pair* pair = impl_->pairs.find_open(peer);
  if (pair == nullptr) return {};
  return {pair->in->capacity(), pair->out->capacity(), pair->changes + pair->out->changes()};
}

bool Mailbox::reaches_private_memory(Peer peer) noexcept {
  const mailbox::Pair* pair = impl_->pairs.find_open(peer);
  return pair != nullptr && pair->private_memory != nullptr && pair->private_memory->reachable();
}

std::size_t Mailbox::read_private(Peer peer, std::span<std::byte> destination, std::uint64_t address) noexcept {
  const mailbox::Pair* pair = impl_->pairs.find_open(peer);
  return pair == nullptr || pair->private_memory == nullptr ? 0 : pair->private_memory->read(destination, address);
}

}  // namespace wherry
