// SPDX-License-Identifier: Apache-2.0
// Zero-copy messages, published by one and read in place by any number.
//
//   wherry::Publisher publisher({.pool_bytes = 64 << 20});     wherry::Subscriber subscriber;
//   publisher.listen("wherry://*:2000");                       subscriber.connect("wherry://0:2000");
//   publisher.admit(1);                                        wherry::Message message;
//   wherry::Loan loan;                                         while (subscriber.take(message).ok())
//   while (publisher.loan(loan, 1 << 20).ok()) {                 read(message.bytes());
//     write(loan.bytes());
//     publisher.publish(loan);
//   }
//
// Either side may be the one that listens: one publisher with many subscribers, or one subscriber with many publishers.
// A payload stays where the publisher wrote it, in its pool, until the last subscriber has released it.
#pragma once

#include <wherry/require_cxx20.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <wherry/address.hpp>
#include <wherry/error.hpp>
#include <wherry/result.hpp>
#include <wherry/stream.hpp>

namespace wherry {

namespace message {
class Slabs;
class SubscriberConnection;
}  // namespace message

namespace capi {
struct Held;
}

struct PublisherOptions {
  /// What all messages that are loaned, waiting or being read may take together; rounded up to a power of two within
  /// [4 KiB, 512 GiB]. A page of it costs memory once it is written to. 0: the configured size (WHERRY_POOL).
  std::size_t pool_bytes = 0;
  /// Touch the whole pool when it is made, so that no message waits for the system to find memory.
  bool prefault = false;
};

/// What a publisher does when a subscriber's queue is full.
enum class Overflow : std::uint8_t {
  wait,         ///< it waits for that subscriber, and the others with it: nothing is lost
  drop_oldest,  ///< the subscriber loses the oldest message it has not taken, or, if it holds them all, the new one
};

struct SubscriberOptions {
  /// How many messages of one publisher may wait here or be held, together; rounded up to a power of two within
  /// [1, 65536]. A deep queue lets a fast publisher run ahead, out of what the caches hold.
  std::size_t queue = 16;
  Overflow overflow = Overflow::wait;
  /// Touch the whole pool of each publisher when it joins (see PublisherOptions).
  bool prefault = false;
};

/// Memory in a publisher's pool, to write one message into. Belongs to the thread that uses the publisher. It may
/// outlive its publisher, but can then no longer be published.
class Loan {
 public:
  Loan() noexcept = default;
  Loan(Loan&& other) noexcept { *this = std::move(other); }
  Loan& operator=(Loan&& other) noexcept {
    if (this != &other) {
      release();
      slabs_ = std::exchange(other.slabs_, nullptr);
      bytes_ = std::exchange(other.bytes_, {});
      block_ = other.block_;
    }
    return *this;
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan() { release(); }

  /// Empty if nothing is held, or nothing was asked for. The content is what an earlier message left there.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool held() const noexcept { return slabs_ != nullptr; }
  /// Only the first `bytes` are to be published; at most what is there.
  void shorten(std::size_t bytes) noexcept { bytes_ = bytes_.first(bytes < bytes_.size() ? bytes : bytes_.size()); }
  /// Gives the memory back unpublished.
  void release() noexcept {
    if (slabs_ != nullptr) give_back();
  }

 private:
  friend class Publisher;
  friend struct capi::Held;
  void give_back() noexcept;

  message::Slabs* slabs_ = nullptr;
  std::span<std::byte> bytes_;
  std::uint32_t block_ = 0;
};

/// A message that was taken, to read in place. Belongs to the thread that uses the subscriber. It stays readable until
/// it is released, also when its publisher has died or the subscriber is closed; the publisher cannot use its memory
/// again before. The memory is mapped for reading only; but a hostile publisher may change it meanwhile: bytes that are
/// checked and then used must be copied first.
class Message {
 public:
  Message() noexcept = default;
  Message(Message&& other) noexcept { *this = std::move(other); }
  Message& operator=(Message&& other) noexcept {
    if (this != &other) {
      release();
      connection_ = std::exchange(other.connection_, nullptr);
      bytes_ = std::exchange(other.bytes_, {});
      ticket_ = other.ticket_;
      process_ = other.process_;
    }
    return *this;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() { release(); }

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool held() const noexcept { return connection_ != nullptr; }
  /// The process that published it. Only while it is held.
  [[nodiscard]] const Peer& publisher() const noexcept;
  /// Gives the memory back to the publisher. In any order. A forked child's copy of what its parent holds gives
  /// nothing back, here or in the destructor: that is the parent's.
  void release() noexcept {
    if (connection_ != nullptr) give_back();
  }

 private:
  friend class Subscriber;
  friend struct capi::Held;
  void give_back() noexcept;

  message::SubscriberConnection* connection_ = nullptr;
  std::span<const std::byte> bytes_;
  std::uint32_t ticket_ = 0;
  std::uint32_t process_ = 0;
};

/// Publishes messages to all subscribers that are joined to it.
///
/// Threads: one at a time; `cancel` from any thread while the object exists.
///
/// Errors: moving data never throws and never allocates; setting up throws Error. Result::error is EMSGSIZE when a
/// message is larger than the pool, ENOBUFS when this program itself holds in loans what is missing, EPIPE when no
/// subscriber is joined and none can join, EINVAL for a loan that is not held or of another publisher, ENOTCONN before
/// the first listen or connect, ECANCELED after `cancel`, ETIMEDOUT. A subscriber that dies, leaves or writes nonsense
/// into shared memory is dropped and its messages are reclaimed: no error, it is seen in subscribers().
///
/// Fork: the publisher stays the parent's; a child must not use it, and may destroy its copy, which ends nothing.
///
/// Needs memory that both sides map: fabrics without (put fabrics) refuse listen and connect with ENOTSUP.
class Publisher {
 public:
  class Impl;

  /// Throws Error(EINVAL) for a bad option.
  explicit Publisher(PublisherOptions options = {});
  Publisher(Publisher&&) noexcept;
  Publisher& operator=(Publisher&&) noexcept;
  /// Subscribers receive everything published so far, then the end. Never blocks.
  ~Publisher();

  // Setting up: throws Error ------------------------------------------------------------------------------------------

  /// Lets subscribers connect. Once per publisher. `*` as port is a free one: see local().
  void listen(std::string_view address);
  /// Connects to a subscriber that listens, or will; blocks until it has let this publisher in. Timeout and errors are
  /// those of wherry::connect. Any number of times.
  void connect(std::string_view address, Timeout timeout = {});
  /// The same without blocking: `admit` completes it. `wait` as for wherry::start_connect.
  void start_connect(std::string_view address, Timeout wait = {});
  /// Accepts connectors that wait at the port, completes connections under way, drops subscribers that are gone, and
  /// blocks until at least `wanted` are joined (0: never blocks). Returns how many are. Throws Error(ETIMEDOUT), and
  /// what Connecting::try_finish throws. Blocking loan and publish accept newcomers too while they wait.
  std::size_t admit(std::size_t wanted = 0, Timeout timeout = {});

  // Moving data -------------------------------------------------------------------------------------------------------

  /// Lends memory for a message of `bytes` bytes, any number at a time; what `into` held before is given back. Blocks
  /// while the pool is in use by subscribers.
  [[nodiscard]] Result loan(Loan& into, std::size_t bytes, Timeout timeout = {}) noexcept;
  [[nodiscard]] Result try_loan(Loan& into, std::size_t bytes) noexcept;
  /// Hands the message to every subscriber; the loan is then empty. Blocks while a subscriber that asked for
  /// Overflow::wait has a full queue; no subscriber gets it before all can. On failure the loan is kept.
  /// With no subscriber joined the message is discarded, which succeeds as long as this publisher listens.
  [[nodiscard]] Result publish(Loan& loan, Timeout timeout = {}) noexcept;
  [[nodiscard]] Result try_publish(Loan& loan) noexcept;
  /// A descriptor for poll, select and epoll that becomes readable when a `try_loan` or `try_publish` that would block
  /// may succeed, or `admit` has something to do. Another attempt that would block silences it. Belongs to the
  /// publisher. Throws Error.
  int descriptor();
  /// Makes every blocked and later call that moves data fail with ECANCELED.
  void cancel() noexcept;

  [[nodiscard]] std::size_t subscribers() const noexcept;  ///< joined, as far as is known
  [[nodiscard]] const Address& local() const noexcept;     ///< the address listened on, with `*` resolved
  [[nodiscard]] std::size_t pool_bytes() const noexcept;   ///< the largest message

 private:
  [[nodiscard]] Result lend(Loan& into, std::uint32_t block, Result result) noexcept;
  [[nodiscard]] static Result settle(Loan& loan, Result result) noexcept;

  std::unique_ptr<Impl> impl_;
};

/// Takes the messages of every publisher that is joined to it: each publisher's in order, the publishers in turn. A
/// turn ends when the publisher has no message, or after 0.4 ms.
///
/// Threads: one at a time, messages included; `cancel` from any thread while the object exists.
///
/// Errors: as for Publisher. Result::error of a take is ECONNRESET when a publisher died before it closed, after
/// everything it had published was taken, EPROTO when it wrote nonsense into shared memory: once for each, then the
/// others go on; ENOTSUP in a forked child, see there; ENOTCONN before the first listen or connect. `end`: no
/// publisher is joined any more, and none can join; ECONNREFUSED instead if a start_connect was refused.
///
/// Fork: the subscriber stays the parent's; a child that destroys its copy leaves nothing. A child may take in its
/// parent's place, which from then on takes nothing, if the parent held no message when it forked: else a take fails
/// with ENOTSUP.
class Subscriber {
 public:
  class Impl;

  /// Throws Error(EINVAL) for a bad option.
  explicit Subscriber(SubscriberOptions options = {});
  Subscriber(Subscriber&&) noexcept;
  Subscriber& operator=(Subscriber&&) noexcept;
  /// Leaves. What was not taken goes back to the publishers.
  ~Subscriber();

  // Setting up: throws Error ------------------------------------------------------------------------------------------

  void listen(std::string_view address);
  void connect(std::string_view address, Timeout timeout = {});
  void start_connect(std::string_view address, Timeout wait = {});
  /// As Publisher::admit.
  std::size_t admit(std::size_t wanted = 0, Timeout timeout = {});

  // Moving data -------------------------------------------------------------------------------------------------------

  /// Releases what `into` held, and blocks until there is a message. Result::bytes is its size.
  [[nodiscard]] Result take(Message& into, Timeout timeout = {}) noexcept;
  [[nodiscard]] Result try_take(Message& into) noexcept;
  /// A descriptor for poll, select and epoll that stays readable while messages, the end or a failure wait to be taken,
  /// or `admit` has something to do; a `try_take` that would block silences it. It may be readable with nothing to
  /// take, once. Belongs to the subscriber. Throws Error.
  int descriptor();
  /// Makes every blocked and later take fail with ECANCELED.
  void cancel() noexcept;

  [[nodiscard]] std::size_t publishers() const noexcept;  ///< joined, as far as is known
  [[nodiscard]] std::uint64_t dropped() const noexcept;   ///< messages lost to Overflow::drop_oldest, of all publishers
  [[nodiscard]] const Address& local() const noexcept;    ///< the address listened on, with `*` resolved

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
