// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/mailbox/systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <wherry/address.hpp>

#include "bench/harness/descriptor_limit.hpp"
#include "bench/harness/message_buffer.hpp"

namespace wherry::bench::mailbox {
namespace {

constexpr std::chrono::seconds kCallTimeout{20};

constexpr std::array kDescriptions{
    MailboxSystem::Description{"mailbox-equal", "the same section for each sender", Layout::equal, 64},
    MailboxSystem::Description{
        "mailbox-topology-2",
        "headers of 2 lines, 128 B, of 1 before the first message; both neighbours share the rest", Layout::topology,
        128, 64},
    MailboxSystem::Description{
        "mailbox-topology-3",
        "headers of 3 lines, 192 B, of 1 before the first message; both neighbours share the rest", Layout::topology,
        192, 64},
    MailboxSystem::Description{"mailbox-adaptive", "headers of 2 lines, 128 B; those that send share the rest",
                               Layout::adaptive, 128},
};

void moved(const Result& result) {
  if (result.ended()) throw std::runtime_error("the peer is gone");
  if (!result.ok()) throw std::system_error(result.error, std::system_category(), "mailbox");
}

/// One of the two that talk.
class MailboxLink final : public Link {
 public:
  MailboxLink(const Place& place, const wherry::MailboxOptions& options, std::uint32_t others)
      : mailbox_(options), adaptive_(options.layout == Layout::adaptive), out_(place.sample.size), in_(out_.size()) {
    mailbox_.listen({});
    place.exchange.post(place.rank, mailbox_.local().to_string());
    other_ = mailbox_.connect(Address::parse(place.exchange.read(1 - place.rank)));
    await(others);
    if (options.layout == Layout::topology) declare_ring();
  }

  std::span<std::byte> prepare() override { return out_.span(); }
  void send() override { moved(mailbox_.send(other_, out_.span(), kCallTimeout)); }
  [[nodiscard]] std::uint64_t learns_within() const override {
    return adaptive_ ? std::clamp<std::uint64_t>((std::uint64_t{32} << 20) / out_.size(), 10, 1000) : 0;
  }
  std::span<const std::byte> receive() override {
    Mailbox::Peer from = Mailbox::kNoPeer;
    const Result result = mailbox_.receive(in_.span(), from, kCallTimeout);
    moved(result);
    return in_.span().first(result.bytes);
  }

 private:
  /// Letting them in is nothing that wait() would return for.
  void await(std::uint32_t peers) {
    const auto end = std::chrono::steady_clock::now() + kCallTimeout;
    while (mailbox_.peers() < peers) {
      mailbox_.wait(std::chrono::milliseconds{1});
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("not all processes have come");
    }
  }

  /// The other, and one of those that sleep, if there are any.
  void declare_ring() {
    std::vector<Mailbox::Neighbour> neighbours{{other_}};
    const Mailbox::Peer last = other_ == 0 ? 1 : 0;
    if (mailbox_.peers() > 1) neighbours.push_back({last});
    mailbox_.set_neighbours(neighbours);
  }

  Mailbox mailbox_;
  bool adaptive_;
  Mailbox::Peer other_ = Mailbox::kNoPeer;
  MessageBuffer out_;
  MessageBuffer in_;
};

}  // namespace

Outcome MailboxSystem::run(const Sample& /*sample*/) { throw std::logic_error("measured with others started only"); }

std::string StartedMailboxes::name() const { return fmt::format("{}/{}", system_.name(), started_.processes); }

wherry::MailboxOptions StartedMailboxes::options() const {
  return {.budget = started_.budget,
          .header = system_.description().header,
          .quiet = system_.description().quiet,
          .layout = system_.description().layout,
          .most_peers = std::max<std::size_t>(started_.processes, 2)};
}

bool StartedMailboxes::can(const Sample& sample) const { return sample.senders == 1; }

std::unique_ptr<Link> StartedMailboxes::open(const Place& place) {
  raise_descriptor_limit();
  return std::make_unique<MailboxLink>(place, options(), started_.processes - 1);
}

void StartedMailboxes::stand_by(const Place& place) {
  Mailbox mailbox(options());
  mailbox.connect(Address::parse(place.exchange.read(0)));
  mailbox.connect(Address::parse(place.exchange.read(1)));
  // Their ends are the sample's.
  std::array<Mailbox::Loss, 2> losses{};
  for (std::size_t gone = 0; gone < losses.size(); gone += mailbox.losses(losses)) mailbox.wait();
}

void add_systems(Registry& registry) {
  for (const auto& one : kDescriptions) registry.systems.push_back(std::make_unique<MailboxSystem>(one));
}

}  // namespace wherry::bench::mailbox
