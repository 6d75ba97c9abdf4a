// SPDX-License-Identifier: Apache-2.0
// Makes and ends pairs of mailboxes: the listener, the attempts to connect, and the choice between two connections that
// cross.
//
// May include: base, layout, fabric, stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <wherry/address.hpp>
#include <wherry/mailbox.hpp>

#include "base/fork_generation.hpp"
#include "mailbox/doorbells.hpp"
#include "mailbox/early_data.hpp"
#include "mailbox/pairs.hpp"
#include "mailbox/section_allocator.hpp"
#include "mailbox/write_interest.hpp"
#include "stream/waiter.hpp"

namespace wherry::mailbox {

class Connector {
 public:
  using Time = stream::SteadyClock::time_point;

  /// @param options  checked already
  Connector(Pairs& pairs, EarlyData& early, WriteInterest& write_interest, Doorbells& bells, SectionAllocator& sections,
            const MailboxOptions& options);
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;
  /// Closes all pairs, except in a forked child: what is shared with other processes belongs to the parent.
  ~Connector();

  // As the functions of Mailbox.
  void listen(const Address& address);
  [[nodiscard]] const Address& local() const noexcept;
  Mailbox::Peer connect(const Address& address, const Timeout& wait);
  void forget(Mailbox::Peer peer) noexcept;

  /// Call it when the port is readable: accepts all waiting peers. Does nothing without a listener, or while the port
  /// is paused.
  void accept_all() noexcept;
  /// Call it when the attempt's descriptor is readable: opens the pair if the attempt is complete.
  void finish_attempt(Pair& pair) noexcept;
  /// Retries what is due at `now`: attempts that gave way, and a port that could not be served.
  void retry_all(Time now) noexcept;
  /// When retry_all is next due. Empty: nothing is waiting.
  [[nodiscard]] std::optional<Time> next_retry() const noexcept {
    return waiting_ != 0 || port_is_paused_ ? std::optional(next_retry_) : std::nullopt;
  }

  /// Sends the message as early data. False: the peer has granted a section or is about to, or there is no room. The
  /// pair may be open afterwards.
  [[nodiscard]] bool send_early(Pair& pair, Mailbox::Outgoing& message) noexcept;

  /// Claims the peer's early data again, after its first grant: after the first claim, the peer may have attached
  /// messages that it had withdrawn from another connection. Returns 0 or an errno value.
  [[nodiscard]] int claim_again(Pair& pair) noexcept {
    pair.claims_again = false;
    return early_.claim(pair, *pair.connection);
  }

  /// Ends the pair; the loss is reported after its last early message. Returns false if the pair was lost before.
  bool lose(Pair& pair, int error) noexcept;
  /// Ends a pair whose peer is gone, after all that had arrived was read. False: the connection only gave way to the
  /// peer's, and the pair waits for that.
  bool end_of_gone(Pair& pair) noexcept;

 private:
  fabric::Fabric& fabric_of(const Address& address);
  void set_fabric(fabric::Fabric& fabric) noexcept;
  [[nodiscard]] fabric::Offer offer() const;
  Pair& make_pair();
  void start(Pair& pair, const fabric::Deadline& listener_by);
  void retry_later(Pair& pair) noexcept;
  void set_port_paused(bool paused) noexcept;
  void accept(std::unique_ptr<fabric::Connection> connection);
  [[nodiscard]] bool give_up(Pair& pair) noexcept;
  void change_over(Pair& pair, std::unique_ptr<fabric::Connection> connection) noexcept;
  [[nodiscard]] Pair* crossing(const Address& address, std::uint64_t number) const noexcept;
  void drop_attempt(Pair& pair) noexcept;
  void open(Pair& pair, std::unique_ptr<fabric::Connection> connection);
  static void finish(Pair& pair) noexcept;
  static void flush(Pair& pair, fabric::Deadline deadline) noexcept;
  void end_connection(Pair& pair) noexcept;
  static void drop_connection(Pair& pair) noexcept;

  Pairs& pairs_;
  EarlyData& early_;
  WriteInterest& write_interest_;
  Doorbells& bells_;
  SectionAllocator& sections_;
  const Origin origin_;
  const std::uint64_t number_;  ///< random; identifies this mailbox to its peers
  const std::size_t overflow_;  ///< bytes of a section and its overflow together, as offered to peers
  const std::size_t most_peers_;

  fabric::Fabric* fabric_ = nullptr;
  std::string fabric_name_;  ///< as in the user's addresses
  std::unique_ptr<fabric::Listener> listener_;
  Source port_{Source::Kind::port};
  bool port_is_paused_ = false;  ///< paused because it could not be served
  Address nowhere_;
  std::size_t waiting_ = 0;  ///< pairs in State::waiting
  Time next_retry_{};        ///< valid while a pair waits or the port is paused
};

}  // namespace wherry::mailbox
