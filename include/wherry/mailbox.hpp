// SPDX-License-Identifier: Apache-2.0
// Many senders, one receiver, a fixed budget of bytes.
//
//   wherry::Mailbox mailbox({.budget = 64 << 10});            wherry::Mailbox mailbox;
//   mailbox.listen("wherry://*:2000");
//   std::byte buffer[4096];                                   auto to = mailbox.connect("wherry://0:2000");
//   wherry::Mailbox::Peer from;                               mailbox.send(to, bytes);
//   auto got = mailbox.receive(buffer, from);
//
// A mailbox is the receiver's buffer. Each sender has a section of it, which only that sender writes. A section is at
// least the header, or MailboxOptions::quiet before its sender has sent. It is larger if the layout gives the sender a
// part of the budget. The layout changes while messages flow, each pair independently.
#pragma once

#include <wherry/require_cxx20.hpp>

#include <sys/uio.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <wherry/address.hpp>
#include <wherry/error.hpp>
#include <wherry/result.hpp>
#include <wherry/stream.hpp>

namespace wherry {

/// How a mailbox divides its budget among its senders.
enum class Layout : std::uint8_t {
  equal,     ///< equal sections; with more than 100 peers as `adaptive`
  topology,  ///< declared neighbours share the budget minus the headers, by weight; with none declared as `adaptive`
  adaptive,  ///< the peers that actually send share it
};

struct MailboxOptions {
  /// Bytes of all sections together, headers included. Headers are granted even if the budget is exceeded. A new peer
  /// gets its header at once, before the others have returned their excess.
  std::size_t budget = std::size_t{64} << 10;
  std::size_t header = 128;  ///< least section of a peer that has sent: a multiple of 64, 64 to 1024
  std::size_t quiet = 0;     ///< the same for a peer that has not sent: at most `header`; 0: as `header`
  Layout layout = Layout::adaptive;
  std::size_t lane = 0;  ///< bytes beyond the budget that widen() gives a peer: a multiple of 64, at most 1 GiB
  /// Bytes beyond the budget that a sender may have in flight while this side does not read, behind the section.
  /// Seven eighths can be used at any time, however much was read. A multiple of 64, at most 1 GiB; 0: no overflow.
  ///
  /// Early data: where peers map each other's memory, an overflow above 0 also lets this side send before a peer
  /// accepts it (try_send, try_send_whole). Whole messages of up to 320 KiB in total may be sent so. The peer then has
  /// them, whatever this side does later.
  std::size_t overflow = 0;
  std::size_t most_peers = 1024;  ///< further peers are refused; connect throws ENOSPC
};

/// A receiver's bounded buffer, divided into sections, one for each sender; and this program's sections in the
/// mailboxes of others. Messages of any length are delivered whole, and in order per sender. A message that does not
/// fit a section moves through it in pieces.
///
/// Progress: a mailbox makes progress only during its calls. wait() and progress(), and the other calls when they find
/// nothing to do, accept new peers, answer layout changes and notice deaths. A program that neither sends nor receives
/// for long delays the layouts of its peers' mailboxes, but not their messages.
///
/// Threads: one at a time; interrupt() from any.
///
/// Errors: setting up throws Error. Moving data never throws, and allocates only when a peer comes or goes. losses()
/// reports a peer that dies, leaves or writes an invalid value into shared memory, after all messages that it had sent.
/// Sends to it then fail: EPIPE (it has left), ECONNRESET (it died), EPROTO (an invalid value). EINVAL: there is no
/// such peer, or the last message to that peer is not complete.
///
/// Fork: a mailbox belongs to the parent. A child must not use it. It may destroy its copy, which ends no connection.
///
/// Peers: each is reached by one connection, with four descriptors (shm) and a page of memory on each side. The page
/// includes the first 3 KiB of the section.
class Mailbox {
 public:
  class Impl;

  /// The mailbox's number of a peer. A number is reused only after forget().
  using Peer = std::uint32_t;
  static constexpr Peer kNoPeer = UINT32_MAX;

  /// Throws Error: EINVAL for a bad option, EMFILE.
  explicit Mailbox(const MailboxOptions& options = {});
  Mailbox(Mailbox&&) noexcept;
  Mailbox& operator=(Mailbox&&) noexcept;
  /// Closes the mailbox: peers receive everything sent so far, then the end. Does not wait for peers of this machine.
  /// For other hosts it waits until they have acknowledged all messages, for at most 10 s.
  ~Mailbox();

  // Setting up: throws Error ------------------------------------------------------------------------------------------

  /// Lets peers connect. At most once per mailbox, and before the first connect, so that peers learn the address. `*`
  /// as port is a free port: see local().
  void listen(const Address& address);
  template <std::convertible_to<std::string_view> Text>
  void listen(const Text& address) {
    listen(Address::parse(address));
  }
  /// The address on which the mailbox listens, with `*` resolved. Empty before listen.
  [[nodiscard]] const Address& local() const noexcept;
  /// Connects to the mailbox that listens there, or will. Never blocks. Messages may be sent at once: they wait until
  /// the peer has accepted this side, or are early data (MailboxOptions::overflow).
  ///
  /// Without a listener wait() and progress() retry every 1 to 100 ms, for `wait`. Empty: the configured time
  /// (WHERRY_CONNECT_TIMEOUT). Zero: no retry. Then the peer is a loss with ECONNREFUSED.
  ///
  /// A peer that has connected from that address, or is being connected to, is returned again. If two mailboxes connect
  /// to each other at the same moment, they become one pair. A mailbox may connect to its own address, but messages
  /// from it arrive with another number.
  ///
  /// Throws Error: ECONNREFUSED (no listener on this host, and `wait` is zero), ENOSPC (most_peers), EMFILE.
  Peer connect(const Address& address, Timeout wait = {});
  template <std::convertible_to<std::string_view> Text>
  Peer connect(const Text& address, Timeout wait = {}) {
    return connect(Address::parse(address), wait);
  }
  /// The address on which the peer's mailbox listens, by its own statement. Empty if it does not listen, or if there is
  /// no such peer.
  [[nodiscard]] std::string address_of(Peer peer) const;
  /// The number of peers that are not lost.
  [[nodiscard]] std::size_t peers() const noexcept;

  // Sending -----------------------------------------------------------------------------------------------------------

  /// A message that is being sent. The caller must not change the pieces until the whole message was sent.
  struct Outgoing {
    std::span<const iovec> pieces;
    std::uint64_t bytes = 0;  ///< their sum
    std::uint64_t taken = 0;  ///< bytes sent so far; the caller must not change it
  };
  /// Sends as many bytes as there is room for: moved (the number; 0 only for an empty message, which is then sent),
  /// would_block, failed. The message is complete once taken == bytes. Messages to one peer are sent one after the
  /// other.
  [[nodiscard]] Result try_send(Peer to, Outgoing& message) noexcept;
  /// Sends the whole message or nothing (would_block). EMSGSIZE: longer than the section that the peer grants a sender
  /// which has not sent yet (MailboxOptions::quiet), minus 16 bytes; use an Outgoing.
  [[nodiscard]] Result try_send(Peer to, std::span<const std::byte> message) noexcept;
  /// The same for a message in two parts.
  [[nodiscard]] Result try_send(Peer to, std::span<const std::byte> head, std::span<const std::byte> rest) noexcept;
  /// Sends the whole message or nothing (would_block). It may use the receiver's overflow (MailboxOptions::overflow),
  /// so no part of the message waits for another call of this side. For messages of at most three quarters of the
  /// overflow: a longer message that fits no section may never be sent.
  [[nodiscard]] Result try_send_whole(Peer to, Outgoing& message) noexcept;
  /// The size of the largest message that now fits whole into the section, without the overflow. 0: less than `least`.
  /// Then writable() and wait() report when there are as many bytes, or as many as an empty section takes.
  [[nodiscard]] std::size_t room(Peer to, std::size_t least) noexcept;
  /// Blocks until the whole message was sent. Layout changes are answered meanwhile; incoming messages wait. After
  /// ETIMEDOUT with Result::bytes > 0, the rest must follow before any other message to this peer: send it by an
  /// Outgoing with that `taken`.
  [[nodiscard]] Result send(Peer to, std::span<const std::byte> message, Timeout timeout = {}) noexcept;
  [[nodiscard]] Result send(Peer to, Outgoing& message, Timeout timeout = {}) noexcept;
  /// The same for text, a pointer and a number of bytes, objects and contiguous ranges, as for Stream.
  [[nodiscard]] Result send(Peer to, std::string_view message, Timeout timeout = {}) noexcept {
    return send(to, plain::bytes_at(message.data(), message.size()), timeout);
  }
  [[nodiscard]] Result try_send(Peer to, std::string_view message) noexcept {
    return try_send(to, plain::bytes_at(message.data(), message.size()));
  }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result send(Peer to, const T* data, Size bytes, Timeout timeout = {}) noexcept {
    return send(to, plain::bytes_at(data, bytes), timeout);
  }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result try_send(Peer to, const T* data, Size bytes) noexcept {
    return try_send(to, plain::bytes_at(data, bytes));
  }
  template <plain::Source Data>
    requires(!std::same_as<Data, Outgoing>)
  [[nodiscard]] Result send(Peer to, const Data& message, Timeout timeout = {}) noexcept {
    return send(to, plain::bytes_of(message), timeout);
  }
  template <plain::Source Data>
    requires(!std::same_as<Data, Outgoing>)
  [[nodiscard]] Result try_send(Peer to, const Data& message) noexcept {
    return try_send(to, plain::bytes_of(message));
  }
  /// Peers to which a try_send would have blocked and that now have room, or are lost: each once, as found by the last
  /// wait() or progress(). Returns their number. Call again while `into` is filled.
  [[nodiscard]] std::size_t writable(std::span<Peer> into) noexcept;

  // Receiving ---------------------------------------------------------------------------------------------------------

  /// A part of a message, in place. A hostile peer may still change these bytes: copy bytes that are checked before
  /// they are used.
  struct Piece {
    Peer from = kNoPeer;
    std::uint64_t message_bytes = 0;
    std::uint64_t offset = 0;  ///< within the message
    ConstRegions bytes;        ///< empty only if the message is
    bool more = false;         ///< more bytes of this sender have arrived behind it
  };
  /// Finds the next piece, of all senders in turn. It is valid until it is consumed. moved: the size of the piece.
  /// would_block: there is none.
  [[nodiscard]] Result try_peek(Piece& piece) noexcept;
  /// Whether try_peek() may find something, after it has found nothing. It takes no system call, and much less time
  /// than try_peek(). false can be wrong: a peer that was silent for long, and changes other than messages, are found
  /// by try_peek() only. So poll with it a few times at most.
  [[nodiscard]] bool has_news() noexcept;
  /// Consumes the first `bytes` of the last piece that was peeked; 0 for an empty message.
  void consume(const Piece& piece, std::size_t bytes) noexcept;
  /// Receives a whole message into `buffer`. would_block: no message is complete yet. `buffer` then holds the part that
  /// has arrived, and the next call must pass the same buffer. EMSGSIZE: the message is longer (Result::bytes is its
  /// size), and stays.
  [[nodiscard]] Result try_receive(std::span<std::byte> buffer, Peer& from) noexcept;
  /// Blocks until there is a message. would_block: losses() has a loss, or interrupt() was called.
  [[nodiscard]] Result receive(std::span<std::byte> buffer, Peer& from, Timeout timeout = {}) noexcept;
  /// The same for a pointer and a number of bytes, objects and contiguous ranges.
  template <Memory T, std::integral Size>
  [[nodiscard]] Result try_receive(T* buffer, Size bytes, Peer& from) noexcept {
    return try_receive(plain::place_at(buffer, bytes), from);
  }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result receive(T* buffer, Size bytes, Peer& from, Timeout timeout = {}) noexcept {
    return receive(plain::place_at(buffer, bytes), from, timeout);
  }
  template <plain::Place Data>
  [[nodiscard]] Result try_receive(Data&& data, Peer& from) noexcept {
    return try_receive(plain::place_of<Data>(std::forward<Data>(data)), from);
  }
  template <plain::Place Data>
  [[nodiscard]] Result receive(Data&& data, Peer& from, Timeout timeout = {}) noexcept {
    return receive(plain::place_of<Data>(std::forward<Data>(data)), from, timeout);
  }

  // Ending ------------------------------------------------------------------------------------------------------------

  /// A peer whose connection has ended, and whose messages were all consumed.
  struct Loss {
    Peer peer;
    int error;  ///< 0: closed in order; ECONNRESET: died; EPROTO: broke the protocol; ECONNREFUSED: no listener
  };
  /// Takes the losses since the last call. Returns their number. Call again while `into` is filled.
  [[nodiscard]] std::size_t losses(std::span<Loss> into) noexcept;
  /// Ends this side of the pair, unless it has ended, and frees the peer's number. Waits as the destructor does.
  void forget(Peer peer) noexcept;

  // Waiting -----------------------------------------------------------------------------------------------------------

  /// Blocks until there is a piece, room for a sender that had none, a loss or an interruption. Accepts new peers and
  /// answers layout changes meanwhile. False: the timeout passed.
  bool wait(Timeout timeout = {}) noexcept;
  /// As wait(), for a program that has polled for long and found nothing. It sleeps without another spin. Peers that
  /// were active before the sleep are active after it.
  bool sleep(Timeout timeout = {}) noexcept;
  /// As wait() without sleeping, for a program that polls. It makes a system call only now and then.
  bool progress() noexcept;
  /// Makes the current wait, or the next, return true. May be called from any thread.
  void interrupt() noexcept;
  /// A descriptor for poll and epoll: readable while wait() might return at once. A progress() that returns false
  /// silences it. It belongs to the mailbox.
  int descriptor() noexcept;

  // Layout ------------------------------------------------------------------------------------------------------------

  struct Neighbour {
    Peer peer = kNoPeer;
    std::uint32_t weight = 1;
  };
  void set_layout(Layout layout) noexcept;
  /// A pair that was made under a smaller budget cannot get a larger section than that budget.
  void set_budget(std::size_t bytes) noexcept;
  /// For Layout::topology: declares the peers that send to this mailbox. Replaces the earlier declaration. Throws
  /// std::bad_alloc.
  void set_neighbours(std::span<const Neighbour> neighbours);
  /// Adds a lane to the peer's section, before many messages arrive, or takes it back. A lane is memory beyond the
  /// budget, while it is given. No effect if there is no lane, or if the peer is not connected yet.
  void widen(Peer peer, bool wide) noexcept;
  /// The sizes of the peer's section in this mailbox and of this side's in the peer's, and the number of changes of
  /// both.
  struct Section {
    std::size_t incoming = 0, outgoing = 0;
    std::uint64_t changes = 0;
  };
  [[nodiscard]] Section section(Peer peer) const noexcept;

  // Where both run under one kernel, for large messages -------------------------------------------------------------

  /// Whether the kernel lets this process read the peer's memory. The first call makes a system call.
  bool reaches_private_memory(Peer peer) noexcept;
  /// Copies from the memory of the peer's process, at an address of that process. Returns the number of bytes copied,
  /// which may be fewer than asked for.
  std::size_t read_private(Peer peer, std::span<std::byte> destination, std::uint64_t address) noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
