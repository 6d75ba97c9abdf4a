// SPDX-License-Identifier: Apache-2.0
// How pairs of mailboxes come about, and end: the listener, attempts to connect, and which of two that cross stays. May
// include: base, layout, fabric, stream.
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
  /// Closes all pairs, except in a forked child: there, what other processes share is the parent's.
  ~Connector();

  // As the functions of Mailbox.
  void listen(const Address& address);
  [[nodiscard]] const Address& local() const noexcept;
  Mailbox::Peer connect(const Address& address, const Timeout& wait);
  void forget(Mailbox::Peer peer) noexcept;

  /// The port is readable: lets in all that wait there. Nothing without a listener, or while the port is paused.
  void accept_all() noexcept;
  /// The attempt's descriptor is readable.
  void finish_attempt(Pair& pair) noexcept;
  /// Repeats what is due by now: attempts that gave way, a port that could not be served.
  void retry_all(Time now) noexcept;
  /// When retry_all has something to do next. Empty: nothing.
  [[nodiscard]] std::optional<Time> next_retry() const noexcept {
    return waiting_ != 0 || port_rests_ ? std::optional(next_retry_) : std::nullopt;
  }

  /// The message goes where the peer finds it by itself, though it has not granted anything. False: it has, or will
  /// soon, or there is no room. The pair may be open then.
  [[nodiscard]] bool send_early(Pair& pair, Mailbox::Outgoing& message) noexcept;

  /// Claims the peer's early data once more, now that it has granted something: those that it had withdrawn from
  /// another connection it may have attached after the first claim. Returns 0 or an errno value.
  [[nodiscard]] int claim_again(Pair& pair) noexcept {
    pair.claims_again = false;
    return early_.claim(pair, *pair.connection);
  }

  /// The pair is over, which is reported after the last early message. Returns true: that is news.
  bool lose(Pair& pair, int error) noexcept;
  /// The same after a death, of which all that had come was read. False: the connection only gave way to the peer's.
  bool end_of_gone(Pair& pair) noexcept;

 private:
  fabric::Fabric& fabric_of(const Address& address);
  void set_fabric(fabric::Fabric& fabric) noexcept;
  [[nodiscard]] fabric::Offer offer() const;
  Pair& make_pair();
  void start(Pair& pair, const fabric::Deadline& listener_by);
  void retry_later(Pair& pair) noexcept;
  void rest_port(bool rests) noexcept;
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
  const std::uint64_t number_;  ///< random: by it peers know this mailbox
  const std::size_t overflow_;  ///< bytes that this side offers for a section and its overflow
  const std::size_t most_peers_;

  fabric::Fabric* fabric_ = nullptr;
  std::string fabric_name_;  ///< as the user's addresses have it
  std::unique_ptr<fabric::Listener> listener_;
  Source port_{Source::Kind::port};
  bool port_rests_ = false;  ///< it could not be served
  Address nowhere_;
  std::size_t waiting_ = 0;  ///< pairs in State::waiting
  Time next_retry_{};        ///< while any waits, or the port rests
};

}  // namespace wherry::mailbox
