// SPDX-License-Identifier: Apache-2.0
// What a wherry::Mailbox does. Its parts: mailbox.cc (making and ending it), connecting.cc (how pairs come about),
// early_data.cc (messages before that), moving.cc (messages), waiting.cc (looking, asking, sleeping), dividing.cc
// (layouts). May include: base, arch, layout, fabric, stream.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include <wherry/mailbox.hpp>

#include "base/fork_generation.hpp"
#include "mailbox/doorbells.hpp"
#include "mailbox/ledger.hpp"
#include "mailbox/pair.hpp"
#include "mailbox/talkers.hpp"
#include "stream/waiter.hpp"

namespace wherry {

class Mailbox::Impl {
 public:
  explicit Impl(const MailboxOptions& options);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  void listen(const Address& address);
  [[nodiscard]] const Address& local() const noexcept;
  Peer connect(const Address& address, const Timeout& wait);
  [[nodiscard]] std::string address_of(Peer peer) const;
  [[nodiscard]] std::size_t peers() const noexcept { return living_; }

  Result try_send(Peer to, Outgoing& message) noexcept;
  Result try_send(Peer to, std::span<const std::byte> message) noexcept;
  Result try_send_whole(Peer to, Outgoing& message) noexcept;
  Result send(Peer to, Outgoing& message, const Timeout& timeout) noexcept;
  std::size_t writable(std::span<Peer> into) noexcept;

  Result try_peek(Piece& piece) noexcept;
  void consume(const Piece& piece, std::size_t bytes) noexcept;
  Result try_receive(std::span<std::byte> buffer, Peer& from) noexcept;
  Result receive(std::span<std::byte> buffer, Peer& from, const Timeout& timeout) noexcept;

  std::size_t losses(std::span<Loss> into) noexcept;
  void forget(Peer peer) noexcept;

  bool wait(const Timeout& timeout) noexcept;
  bool sleep(const Timeout& timeout) noexcept;
  bool progress() noexcept;
  void interrupt() noexcept;
  int descriptor() noexcept;

  void set_layout(Layout layout) noexcept;
  void set_budget(std::size_t bytes) noexcept;
  void set_neighbours(std::span<const Neighbour> neighbours);
  void widen(Peer peer, bool wide) noexcept;
  [[nodiscard]] Section section(Peer peer) const noexcept;

  bool reaches_private_memory(Peer peer) noexcept;
  std::size_t read_private(Peer peer, std::span<std::byte> destination, std::uint64_t address) noexcept;

 private:
  using Pair = mailbox::Pair;
  using State = mailbox::State;
  using Time = stream::SteadyClock::time_point;

  [[nodiscard]] Pair* find(Peer peer) const noexcept { return peer < pairs_.size() ? pairs_[peer].get() : nullptr; }
  [[nodiscard]] Pair* find_open(Peer peer) const noexcept {
    Pair* pair = find(peer);
    return pair != nullptr && pair->is_open() ? pair : nullptr;
  }

  // connecting.cc
  fabric::Fabric& fabric_of(const Address& address);
  [[nodiscard]] fabric::Offer offer() const;
  Pair& make_pair();
  [[nodiscard]] Pair* pair_at(const Address& address) const noexcept;
  void start(Pair& pair, const fabric::Deadline& listener_by);
  void retry_later(Pair& pair) noexcept;
  void retry_all(Time now) noexcept;
  void finish_attempt(Pair& pair) noexcept;
  void accept_all() noexcept;
  void rest_port(bool rests) noexcept;
  void accept(std::unique_ptr<fabric::Connection> connection);
  void change_over(Pair& pair, std::unique_ptr<fabric::Connection> connection) noexcept;
  [[nodiscard]] Pair* crossing(const Address& address, std::uint64_t number) const noexcept;
  void drop_attempt(Pair& pair) noexcept;
  void open(Pair& pair, std::unique_ptr<fabric::Connection> connection);
  void close(Pair& pair) noexcept;
  [[nodiscard]] bool give_up(Pair& pair) noexcept;
  bool lose(Pair& pair, int error) noexcept;
  void end_connection(Pair& pair) noexcept;
  static void drop_connection(Pair& pair) noexcept;

  // early_data.cc
  [[nodiscard]] std::size_t early_bytes() const noexcept;
  void attach_early(Pair& pair, std::span<std::byte> segment) noexcept;
  [[nodiscard]] bool send_early(Pair& pair, Outgoing& message) noexcept;
  [[nodiscard]] int claim_early(Pair& pair, fabric::Connection& connection) noexcept;
  [[nodiscard]] static int error_of_gone(const Pair& pair) noexcept;
  void find_early(Piece& piece) noexcept;
  void consume_early(Pair& pair, std::size_t bytes) noexcept;

  // moving.cc
  Result send_open(Pair& pair, Outgoing& message) noexcept;
  Result send_open_whole(Pair& pair, Outgoing& message) noexcept;
  void want_room(Pair& pair, std::optional<std::uint64_t> whole = {}) noexcept;
  void stop_wanting(Pair& pair) noexcept;
  bool check_room(Pair& pair) noexcept;
  bool wait_for_room(Pair& pair, const fabric::Deadline& deadline) noexcept;
  bool wait_for_rest(const fabric::Deadline& deadline) noexcept;
  template <class Ready>
  bool wait_until(Ready&& ready, stream::SpinBudget& spin, fabric::Bell bell,
                  const fabric::Deadline& deadline) noexcept;
  [[nodiscard]] static bool is_silent(const Pair& pair) noexcept;
  bool find_in(Pair& pair, Piece& piece) noexcept;
  [[nodiscard]] Result next_piece(Piece& piece) noexcept;

  // waiting.cc
  bool serve(Pair& pair) noexcept;
  bool end_of_gone(Pair& pair) noexcept;
  bool serve_active() noexcept;
  void drop_told() noexcept;
  bool told(bool found) noexcept;
  /// What ends a wait: everything, or what a receiver waits for.
  enum class News : std::uint8_t { all, received };
  [[nodiscard]] bool news(News wanted) const noexcept;
  bool wait_for(News wanted, const fabric::Deadline& deadline) noexcept;
  bool spin(News wanted, const fabric::Deadline& deadline) noexcept;
  bool asking_is_due(unsigned looks) noexcept;
  void ask() noexcept;
  void on_event(mailbox::Source& source) noexcept;
  void suspect_all() noexcept;
  bool arm(Pair& pair) noexcept;
  bool arm_all() noexcept;
  void arm_for_room() noexcept;
  void doze(fabric::Deadline deadline) noexcept;
  void look_again_at(std::size_t armed) noexcept;
  void rest_if_quiet(Pair& pair) noexcept;
  void show() noexcept;
  void hush() noexcept;

  // dividing.cc
  void join_layout(Pair& pair) noexcept;
  void leave_layout(Pair& pair) noexcept;
  void divide() noexcept;
  void settle() noexcept;
  void count_lanes(Pair& pair, bool wide) noexcept;
  void agreed(Pair& pair) noexcept;
  void count(Pair& pair, std::size_t bytes) noexcept;
  [[nodiscard]] bool is_quiet(const Pair& pair) const noexcept { return !pair.heard && weight_of(pair) == 0; }
  [[nodiscard]] bool counts() const noexcept;
  [[nodiscard]] std::uint32_t weight_of(const Pair& pair) const noexcept;

  const Origin origin_;
  const std::uint64_t number_;  ///< random: by it peers know this mailbox
  const mailbox::Lines header_;
  const mailbox::Lines quiet_header_;
  const mailbox::Lines lane_;
  const std::size_t overflow_;
  const std::size_t most_peers_;
  mailbox::Lines budget_;
  Layout layout_;

  mailbox::Doorbells bells_;
  fabric::Fabric* fabric_ = nullptr;
  std::unique_ptr<fabric::Listener> listener_;
  mailbox::Source port_{mailbox::Source::Kind::port};
  bool port_rests_ = false;  ///< it could not be served
  Address nowhere_;
  std::string fabric_name_;  ///< as the user's addresses have it

  std::vector<std::unique_ptr<Pair>> pairs_;  ///< by number; null: free
  std::size_t living_ = 0;
  std::size_t open_ = 0;
  std::size_t waiting_ = 0;   ///< in State::waiting
  Time next_retry_{};         ///< while any waits, or the port rests
  std::vector<Loss> losses_;  ///< these four have room for every pair
  std::vector<Pair*> wanting_;
  std::vector<Peer> writable_;
  std::vector<Pair*> early_;       ///< pairs whose early data are to be read, first come first served
  Pair* sending_ = nullptr;        ///< a blocking send waits for it
  std::size_t told_writable_ = 0;  ///< of them a wait has told of

  mailbox::Ledger ledger_;
  mailbox::Talkers talkers_;
  bool neighbours_ = false;  ///< any declared
  std::uint32_t lanes_ = 0;  ///< pairs that have one

  Peer whole_from_ = kNoPeer;  ///< of the message that try_receive has begun

  stream::SpinBudget spin_;
  stream::SpinBudget spin_for_room_;
  Pair* woken_ = nullptr;    ///< by its bell, last
  unsigned looks_ = 0;       ///< since the clock was looked at
  unsigned vain_looks_ = 0;  ///< of try_peek, since a piece was found
  Time next_ask_{};
  bool nested_ = false;  ///< the descriptor was asked for
  bool shown_ = false;   ///< the own bell rings because of it
  std::atomic<bool> interrupted_{false};
};

}  // namespace wherry
