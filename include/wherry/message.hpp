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
  /// Bytes of all messages that are loaned, waiting or being read; rounded up to a power of two within [4 KiB, 512
  /// GiB]. A page takes memory once it is written. 0: the configured size (WHERRY_POOL).
  std::size_t pool_bytes = 0;
  /// Touch the whole pool when it is made, so that no message waits for page faults.
  bool prefault = false;
};

/// What a publisher does when a subscriber's queue is full.
enum class Overflow : std::uint8_t {
  wait,         ///< the publisher waits for that subscriber, and so do the others; no message is lost
  drop_oldest,  ///< the subscriber loses the oldest message it has not taken, or the new one if it holds all
};

struct SubscriberOptions {
  /// The number of messages of one publisher that may wait or be held here; rounded up to a power of two within [1,
  /// 65536]. With a deep queue a fast publisher runs ahead, and its messages leave the caches before they are read.
  std::size_t queue = 16;
  Overflow overflow = Overflow::wait;
  /// Touch the whole pool of each publisher when it connects (see PublisherOptions).
  bool prefault = false;
};

/// Memory in a publisher's pool, for one message. Threads: only the one that uses the publisher. A loan may outlive its
/// publisher, but can then no longer be published.
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

  /// Empty if nothing is held, or if 0 bytes were asked for. Contains bytes of an earlier message.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool held() const noexcept { return slabs_ != nullptr; }
  /// Reduces the message to its first `bytes`. No effect if there are fewer.
  void shorten(std::size_t bytes) noexcept { bytes_ = bytes_.first(bytes < bytes_.size() ? bytes : bytes_.size()); }
  /// Returns the memory without publishing it.
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

/// A received message, read in place. Threads: only the one that uses the subscriber.
///
/// The message stays readable until it is released, also after its publisher has died or the subscriber was closed. The
/// publisher cannot reuse the memory before. The memory is mapped read-only, but a hostile publisher may change it:
/// copy bytes that are checked before they are used.
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
  /// The process that published the message. Only while the message is held.
  [[nodiscard]] const Peer& publisher() const noexcept;
  /// Returns the memory to the publisher. Messages may be released in any order. A forked child's copy of a message
  /// that the parent holds returns nothing, neither here nor in the destructor.
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

/// Publishes messages to all connected subscribers.
///
/// Threads: one at a time; `cancel` from any thread while the object exists.
///
/// Errors: setting up throws Error. Moving data never throws and never allocates. Values of Result::error:
///   - EMSGSIZE: the message is larger than the pool;
///   - ENOBUFS: this program's own loans hold the missing memory;
///   - EPIPE: publishing, no subscriber is connected and none can connect;
///   - EINVAL: the loan is not held, or is another publisher's;
///   - ENOTCONN: before the first listen or connect;
///   - ECANCELED: after `cancel`;
///   - ETIMEDOUT: the timeout passed.
/// A subscriber that dies, leaves or writes an invalid value into shared memory is removed, and its messages are
/// reclaimed. That is not an error; subscribers() shows it.
///
/// Fork: the publisher belongs to the parent. A child must not use it. It may destroy its copy, which ends no
/// connection.
///
/// Fabrics: both sides must map the pool. Put fabrics refuse listen and connect with ENOTSUP.
class Publisher {
 public:
  class Impl;

  /// Throws Error(EINVAL) for an invalid option.
  explicit Publisher(PublisherOptions options = {});
  Publisher(Publisher&&) noexcept;
  Publisher& operator=(Publisher&&) noexcept;
  /// Closes without blocking: subscribers receive everything published so far, then the end.
  ~Publisher();

  // Setting up: throws Error ------------------------------------------------------------------------------------------

  /// Lets subscribers connect. At most once per publisher. `*` as port is a free port: see local().
  void listen(std::string_view address);
  /// Connects to a subscriber that listens, or will, and blocks until it has accepted this publisher. Timeout and
  /// errors are those of wherry::connect. Any number of times.
  void connect(std::string_view address, Timeout timeout = {});
  /// The same without blocking: `admit` completes it. `wait` as for wherry::start_connect.
  void start_connect(std::string_view address, Timeout wait = {});
  /// Accepts waiting subscribers, completes connections in progress, removes subscribers that are gone, and blocks
  /// until at least `wanted` are connected (0: never blocks). Returns their number. Throws Error(ETIMEDOUT), and the
  /// errors of Connecting::try_finish. Blocking loan and publish also accept new subscribers while they wait.
  std::size_t admit(std::size_t wanted = 0, Timeout timeout = {});

  // Moving data -------------------------------------------------------------------------------------------------------

  /// Lends memory for a message of `bytes` bytes. A program may hold any number of loans. Memory that `into` held is
  /// returned first. Blocks while subscribers use the pool.
  [[nodiscard]] Result loan(Loan& into, std::size_t bytes, Timeout timeout = {}) noexcept;
  [[nodiscard]] Result try_loan(Loan& into, std::size_t bytes) noexcept;
  /// Publishes the message to every subscriber; the loan is then empty. Blocks while a subscriber with Overflow::wait
  /// has a full queue; no subscriber gets the message before all can. After a failure the loan is kept. Without a
  /// subscriber the message is discarded, which succeeds as long as this publisher listens.
  [[nodiscard]] Result publish(Loan& loan, Timeout timeout = {}) noexcept;
  [[nodiscard]] Result try_publish(Loan& loan) noexcept;
  /// A descriptor for poll, select and epoll. It becomes readable when a `try_loan` or `try_publish` that would block
  /// may succeed, or `admit` has something to do. Another attempt that would block silences it. It belongs to the
  /// publisher. Throws Error.
  int descriptor();
  /// Makes every blocked and later call that moves data fail with ECANCELED.
  void cancel() noexcept;

  [[nodiscard]] std::size_t subscribers() const noexcept;  ///< connected, as far as is known
  [[nodiscard]] const Address& local() const noexcept;     ///< the address of the port, with `*` resolved
  [[nodiscard]] std::size_t pool_bytes() const noexcept;   ///< the largest message

 private:
  [[nodiscard]] Result lend(Loan& into, std::uint32_t block, Result result) noexcept;
  [[nodiscard]] static Result settle(Loan& loan, Result result) noexcept;

  std::unique_ptr<Impl> impl_;
};

/// Receives the messages of all connected publishers: those of one publisher in order, the publishers in turn. A turn
/// ends when the publisher has no message, or after 0.4 ms.
///
/// Threads: one at a time, messages included; `cancel` from any thread while the object exists.
///
/// Errors: as for Publisher. A take also returns:
///   - ECONNRESET: a publisher died before it closed, and everything it had published was taken. Returned once per
///     publisher. If no publisher is left and none can connect, later takes return ECONNRESET too;
///   - EPROTO: a publisher wrote an invalid value into shared memory. Returned once per publisher;
///   - ENOTSUP: in a forked child, see below;
///   - ENOTCONN: before the first listen or connect;
///   - ECONNREFUSED: instead of the end, if a start_connect was refused.
/// The status `end` means that no publisher is connected and none can connect.
///
/// Fork: the subscriber belongs to the parent. A child that destroys its copy ends no connection. A child may take
/// messages in its parent's place if the parent held none when it forked. The parent must then take no more. If the
/// parent held a message, a take of the child fails with ENOTSUP.
class Subscriber {
 public:
  class Impl;

  /// Throws Error(EINVAL) for an invalid option.
  explicit Subscriber(SubscriberOptions options = {});
  Subscriber(Subscriber&&) noexcept;
  Subscriber& operator=(Subscriber&&) noexcept;
  /// Leaves. Messages that were not taken return to the publishers.
  ~Subscriber();

  // Setting up: throws Error ------------------------------------------------------------------------------------------

  void listen(std::string_view address);
  void connect(std::string_view address, Timeout timeout = {});
  void start_connect(std::string_view address, Timeout wait = {});
  /// As Publisher::admit.
  std::size_t admit(std::size_t wanted = 0, Timeout timeout = {});

  // Moving data -------------------------------------------------------------------------------------------------------

  /// Releases the message that `into` held, and blocks until there is a new one. Result::bytes is its size.
  [[nodiscard]] Result take(Message& into, Timeout timeout = {}) noexcept;
  [[nodiscard]] Result try_take(Message& into) noexcept;
  /// A descriptor for poll, select and epoll. It is readable while a message, the end or a failure can be taken, or
  /// `admit` has something to do. A `try_take` that would block silences it. It may be readable without cause once. It
  /// belongs to the subscriber. Throws Error.
  int descriptor();
  /// Makes every blocked and later take fail with ECANCELED.
  void cancel() noexcept;

  [[nodiscard]] std::size_t publishers() const noexcept;  ///< connected, as far as is known
  [[nodiscard]] std::uint64_t dropped() const noexcept;   ///< messages lost to Overflow::drop_oldest, of all publishers
  [[nodiscard]] const Address& local() const noexcept;    ///< the address of the port, with `*` resolved

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
