// SPDX-License-Identifier: Apache-2.0
// Many senders, one receiver, a fixed budget of bytes.
//
//   wherry::Mailbox mailbox({.budget = 64 << 10});            wherry::Mailbox mailbox;
//   mailbox.listen("wherry://*:2000");
//   std::byte buffer[4096];                                   auto to = mailbox.connect("wherry://0:2000");
//   wherry::Mailbox::Peer from;                               mailbox.send(to, bytes);
//   auto got = mailbox.receive(buffer, from);
//
// A mailbox is the receiver's buffer. Each sender has a section of it, which only that sender writes: a small one
// always (the header), a larger one if the layout gives it a part of the budget. The layout changes while messages
// flow, each pair by itself.
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
  equal,     ///< all the same; with more than 100 peers as `adaptive`
  topology,  ///< declared neighbours share what the headers leave, by their weights; with none declared as `adaptive`
  adaptive,  ///< those that are seen to send share it
};

struct MailboxOptions {
  /// Bytes that all senders' sections take together, headers included. Headers are given whatever the budget is, and
  /// that of a newcomer at once, before the others have given back what they must.
  std::size_t budget = std::size_t{64} << 10;
  std::size_t header = 128;  ///< bytes that a sender always has once it has sent: a multiple of 64, 64 to 1024
  std::size_t quiet = 0;     ///< bytes that it has before: a multiple of 64, at most `header`; 0: the same
  Layout layout = Layout::adaptive;
  std::size_t lane = 0;  ///< bytes beyond the budget that widen() gives a peer; a multiple of 64, at most 1 GiB
  /// Bytes that a sender may have on its way while this side does not read: what its section does not hold lies behind
  /// it, beyond the budget, until it was read. A multiple of 64, at most 1 GiB; 0: not more than its section. Not 0:
  /// where peers map each other's memory, whole messages of 320 KiB together may also be sent before a peer lets this
  /// side in (try_send, try_send_whole). It has them then, whatever this side does meanwhile.
  std::size_t overflow = 0;
  std::size_t most_peers = 1024;  ///< those beyond are not let in; connect throws ENOSPC
};

/// A receiver's bounded buffer, divided into sections, one for each sender; and this program's places in the mailboxes
/// of others. Messages of any length, whole and in order per sender: what does not fit a section moves through it in
/// pieces.
///
/// Nothing happens in a mailbox but in its calls: newcomers are let in, layouts are answered and deaths are noticed by
/// wait() and progress(), and by the others when they find nothing to do. A program that neither sends nor receives
/// for long holds up the layouts of its peers' mailboxes, not their messages.
///
/// Threads: one at a time; interrupt() from any.
///
/// Errors: setting up throws Error; moving data never throws, and allocates only where a peer comes or goes. A peer
/// that dies, leaves or writes nonsense into shared memory is reported by losses(), after all that it had sent, and
/// sends to it fail: EPIPE (it has left), ECONNRESET (it died), EPROTO (nonsense). EINVAL: no such peer, or a message
/// begins before the last one to that peer was whole.
///
/// Fork: a mailbox stays the parent's; a child must not use it, and may destroy its copy, which ends nothing.
///
/// Peers: each is reached by one connection, with four descriptors (shm) and a page of memory of each side's, which has
/// the first 3 KiB of the section, too.
class Mailbox {
 public:
  class Impl;

  /// What this mailbox knows a peer by. A number is used again only after forget().
  using Peer = std::uint32_t;
  static constexpr Peer kNoPeer = UINT32_MAX;

  /// Throws Error: EINVAL for a bad option, EMFILE.
  explicit Mailbox(const MailboxOptions& options = {});
  Mailbox(Mailbox&&) noexcept;
  Mailbox& operator=(Mailbox&&) noexcept;
  /// Peers receive everything sent so far, then the end. Does not wait.
  ~Mailbox();

  // Setting up: throws Error ------------------------------------------------------------------------------------------

  /// Lets peers connect. Once per mailbox. `*` as port is a free one: see local(). Before the first connect, so that
  /// peers learn the address.
  void listen(const Address& address);
  template <std::convertible_to<std::string_view> Text>
  void listen(const Text& address) {
    listen(Address::parse(address));
  }
  /// Where it listens, `*` resolved. Empty before.
  [[nodiscard]] const Address& local() const noexcept;
  /// The peer whose mailbox listens there, or will. Never blocks: messages may be sent at once, and wait until it has
  /// let this one in, or are early (MailboxOptions::overflow). Without a listener wait() and progress() try again, 1 to
  /// 100 ms apart, for `wait`: empty, the configured time (WHERRY_CONNECT_TIMEOUT); zero, not at all. Then the peer is
  /// a loss with ECONNREFUSED. One that has come from there, or is being connected to, is found again; two that connect
  /// to each other at the same moment become one pair. The own address is a peer like any other, but what arrives from
  /// it has another number. Throws Error: ECONNREFUSED (no listener there, and `wait` is zero), ENOSPC (most_peers),
  /// EMFILE.
  Peer connect(const Address& address, Timeout wait = {});
  template <std::convertible_to<std::string_view> Text>
  Peer connect(const Text& address, Timeout wait = {}) {
    return connect(Address::parse(address), wait);
  }
  /// Where the peer's own mailbox listens, as it says. Empty: it does not, or there is no such peer.
  [[nodiscard]] std::string address_of(Peer peer) const;
  /// Those that are not lost.
  [[nodiscard]] std::size_t peers() const noexcept;

  // Sending -----------------------------------------------------------------------------------------------------------

  /// A message on its way: the caller's pieces, unchanged until all of it was taken.
  struct Outgoing {
    std::span<const iovec> pieces;
    std::uint64_t bytes = 0;  ///< their sum
    std::uint64_t taken = 0;  ///< how much of it has left; the caller leaves it alone
  };
  /// Takes as much as there is room for: moved (how much of it; 0 only of an empty message, which then was taken),
  /// would_block, failed. The message is whole once taken == bytes. Messages to one peer one after the other.
  [[nodiscard]] Result try_send(Peer to, Outgoing& message) noexcept;
  /// The whole message or nothing (would_block). EMSGSIZE: it is longer than the section that the peer grants a sender
  /// which has not sent yet (MailboxOptions::quiet), minus 16 bytes; use an Outgoing.
  [[nodiscard]] Result try_send(Peer to, std::span<const std::byte> message) noexcept;
  /// The same of a message in two parts, one behind the other.
  [[nodiscard]] Result try_send(Peer to, std::span<const std::byte> head, std::span<const std::byte> rest) noexcept;
  /// The whole message or nothing (would_block): also into the receiver's overflow (MailboxOptions::overflow), so that
  /// nothing of it waits for another call of this side. For messages of at most three eighths of that: a longer
  /// one that no section holds may never go.
  [[nodiscard]] Result try_send_whole(Peer to, Outgoing& message) noexcept;
  /// Bytes that a message may have now to go as a whole into the section alone. 0: fewer than `least`, and writable()
  /// and wait() say when there are as many, or as an empty section takes.
  [[nodiscard]] std::size_t room(Peer to, std::size_t least) noexcept;
  /// Blocks until the whole message was taken. Layouts are answered meanwhile; incoming messages wait. After a timeout
  /// (ETIMEDOUT) with Result::bytes > 0 the rest must follow before anything else goes to this peer: by an Outgoing
  /// with `taken` set so.
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
  /// Peers to which a try_send would have blocked and that have room (or are lost), each once, as the last wait() or
  /// progress() found. Returns how many; call again while `into` is filled.
  [[nodiscard]] std::size_t writable(std::span<Peer> into) noexcept;

  // Receiving ---------------------------------------------------------------------------------------------------------

  /// A part of a message, in place. A hostile peer may still change these bytes: copy what is checked before it is
  /// used.
  struct Piece {
    Peer from = kNoPeer;
    std::uint64_t message_bytes = 0;
    std::uint64_t offset = 0;  ///< within the message
    ConstRegions bytes;        ///< empty only if the message is
    bool more = false;         ///< more of this sender's has come behind it
  };
  /// The next piece of any sender in turn: valid until it is consumed. moved: there is one, and how many bytes.
  /// would_block otherwise.
  [[nodiscard]] Result try_peek(Piece& piece) noexcept;
  /// The first `bytes` of the last piece peeked were read; that of an empty message is consumed by 0.
  void consume(const Piece& piece, std::size_t bytes) noexcept;
  /// A whole message into `buffer`. would_block: none is whole yet; what has come of one is kept in `buffer`: the next
  /// call must have the same. EMSGSIZE: it is longer (Result::bytes tells how long); it stays.
  [[nodiscard]] Result try_receive(std::span<std::byte> buffer, Peer& from) noexcept;
  /// Blocks until there is one. would_block: a loss is to be looked at (losses()), or interrupt() was called.
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

  /// A peer whose connection has ended, after all that it had sent was consumed.
  struct Loss {
    Peer peer;
    int error;  ///< 0: it closed in order; ECONNRESET: it died; EPROTO: it broke the rules; ECONNREFUSED: no listener
  };
  /// Those since the last call. Returns how many; call again while `into` is filled.
  [[nodiscard]] std::size_t losses(std::span<Loss> into) noexcept;
  /// Ends this side of the pair, if it is not over yet, and frees its number.
  void forget(Peer peer) noexcept;

  // Waiting -----------------------------------------------------------------------------------------------------------

  /// Lets newcomers in, answers layouts, and returns true at once if there is something: a piece, room for a sender
  /// that had none, a loss, an interruption. Otherwise sleeps until there is. False: the timeout passed.
  bool wait(Timeout timeout = {}) noexcept;
  /// As wait(), for a program that has polled for long and found nothing. It sleeps without another spin, and keeps the
  /// peers that were active before active after it.
  bool sleep(Timeout timeout = {}) noexcept;
  /// The same without sleeping: for a program that polls. It asks the kernel only now and then.
  bool progress() noexcept;
  /// Makes the wait that sleeps now, or the next one, return true. From any thread.
  void interrupt() noexcept;
  /// Readable, for poll and epoll, while wait might return at once; progress() that returns false silences it. Belongs
  /// to the mailbox.
  int descriptor() noexcept;

  // Layout ------------------------------------------------------------------------------------------------------------

  struct Neighbour {
    Peer peer = kNoPeer;
    std::uint32_t weight = 1;
  };
  void set_layout(Layout layout) noexcept;
  /// A pair that was made under a smaller budget cannot have a larger section than that.
  void set_budget(std::size_t bytes) noexcept;
  /// For Layout::topology: the peers that send to this mailbox. Replaces what was declared before. Throws
  /// std::bad_alloc.
  void set_neighbours(std::span<const Neighbour> neighbours);
  /// Gives the peer's section a lane beyond what the layout gives it, for much that is to come; or takes it back. Each
  /// lane is memory beyond the budget, while it is given. Nothing changes where there is no lane, or the peer is not
  /// connected yet.
  void widen(Peer peer, bool wide) noexcept;
  /// The sizes of the peer's section in this mailbox and of this side's in the peer's, and how often the two changed.
  struct Section {
    std::size_t incoming = 0, outgoing = 0;
    std::uint64_t changes = 0;
  };
  [[nodiscard]] Section section(Peer peer) const noexcept;

  // Where both run under one kernel, for large messages -------------------------------------------------------------

  /// Whether the kernel lets this process read the peer's memory. Costs a system call the first time.
  bool reaches_private_memory(Peer peer) noexcept;
  /// Copies from memory of the peer's process, at the peer's address. Returns how many bytes, a prefix.
  std::size_t read_private(Peer peer, std::span<std::byte> destination, std::uint64_t address) noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
