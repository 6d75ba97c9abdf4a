// SPDX-License-Identifier: Apache-2.0
// A subscriber's connection to one publisher. It lives until the subscriber has left it and the last message taken from
// it was released: only then may the publisher reuse their memory.
//
// May include: base, layout, fabric.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "base/fork_generation.hpp"
#include "fabric/check.hpp"
#include "fabric/fabric.hpp"
#include "message/queue.hpp"

namespace wherry::message {

class SubscriberConnection {
 public:
  enum class Look : std::uint8_t { nothing, message, end, lost, broken, inherited };

  struct Taken {
    std::span<const std::byte> bytes;
    std::uint32_t ticket = 0;
    std::uint32_t process = 0;  ///< process that took it: the low 32 bits of its fork_generation()
  };

  /// `places` and `drops` as agreed in the handshake.
  SubscriberConnection(std::unique_ptr<fabric::Connection> connection, std::uint32_t places, bool drops);

  /// Takes the next message, or returns why there is none. `inherited`: this is a forked child whose parent held a
  /// message at the fork; both would write the return to the same place.
  Look take(Taken& taken) noexcept {
    const std::uint32_t process = this_process();
    if (process != taker_ && !take_over(process)) return Look::inherited;
    InQueue::Entry entry;
    InQueue::Look look = queue_.take(entry);
    if (look == InQueue::Look::nothing) {
      const bool gone = gone_;
      // MESSAGE-FINISHED acquire: the last entry is visible once it is set; pairs with the release in
      // PublisherConnection::finish.
      const std::uint64_t finished = own_page().finished.load(std::memory_order_acquire);
      if (!gone && finished == 0) return Look::nothing;
      // Messages published before the end or a death are delivered first: this look comes after that news.
      look = queue_.take(entry);
      if (look == InQueue::Look::nothing) return last_look(finished);
    }
    if (look == InQueue::Look::broken || !fabric::in_range(entry.offset, entry.bytes, shown_.size())) {
      return Look::broken;
    }
    ++held_;
    taken = {shown_.subspan(entry.offset, entry.bytes), entry.ticket, process};
    return Look::message;
  }
  /// Whether take() would return anything but `nothing`. Makes no system call.
  [[nodiscard]] bool waiting() noexcept {
    return queue_.waiting() || gone_ || own_page().finished.load(std::memory_order_acquire) != 0;  // MESSAGE-FINISHED
  }
  /// Returns the message to the publisher, unless `process` took it and is an ancestor that still holds it.
  void release(std::uint32_t ticket, std::uint32_t process) noexcept {
    if (process == this_process()) {
      queue_.give_back(static_cast<std::uint16_t>(ticket));
      connection_->announce(fabric::Bell::space, [this] { return !(owes_ = !worth_waking()); });
    } else {
      parent_holds_ = true;
    }
    if (--held_ == 0 && left_) delete this;
  }
  /// Sets whether other publishers have messages, too.
  void set_contended(bool contended) noexcept { contended_ = contended; }
  /// Sends the wake-up that release() owes a sleeping publisher. Call it before doing anything but take().
  void settle() noexcept {
    if (std::exchange(owes_, false)) connection_->announce(fabric::Bell::space);
  }
  /// Checks whether the publisher still lives. Costs a system call.
  void look() noexcept { gone_ = gone_ || connection_->peer_gone(); }
  /// Ends the subscription: returns waiting messages. The object deletes itself once the last taken message is
  /// released. In a forked child nothing is sent to the publisher.
  void leave() noexcept;

  [[nodiscard]] std::uint64_t dropped() const noexcept { return own_page().dropped.load(std::memory_order_relaxed); }
  [[nodiscard]] fabric::Connection& connection() const noexcept { return *connection_; }

 private:
  ~SubscriberConnection() = default;  // called only by leave() and release()

  static std::uint32_t this_process() noexcept { return static_cast<std::uint32_t>(fork_generation()); }
  [[nodiscard]] const layout::MessageInbox& own_page() const noexcept {
    return *reinterpret_cast<const layout::MessageInbox*>(connection_->segment().data());
  }
  /// Whether to wake a publisher that waits for room. If it were woken for each place, it would run for one message and
  /// sleep again. While other publishers have messages, it is missed only when its queue is empty, and would take the
  /// core from a running one.
  [[nodiscard]] bool worth_waking() noexcept {
    if (left_ || !queue_.waiting()) return true;
    const std::uint64_t wanted = own_page().wanted.load(std::memory_order_relaxed);
    return contended_ ? wanted == 0 : queue_.returned() >= wanted;
  }
  bool take_over(std::uint32_t process) noexcept {
    if (held_ != 0 || parent_holds_) return false;
    taker_ = process;
    return true;
  }
  void announce_closed() noexcept;
  [[nodiscard]] Look last_look(std::uint64_t finished) const noexcept;

  const Origin origin_;
  std::unique_ptr<fabric::Connection> connection_;
  std::span<const std::byte> shown_;
  InQueue queue_;
  std::size_t held_ = 0;
  std::uint32_t taker_ = this_process();
  bool parent_holds_ = false;  ///< this process has released its copy of a message that the parent holds
  bool owes_ = false;          ///< returns were stored without ringing the sleeping publisher
  bool contended_ = false;
  bool left_ = false;
  bool gone_ = false;
};

struct Leave {
  void operator()(SubscriberConnection* connection) const noexcept { connection->leave(); }
};
using SubscriberConnectionPtr = std::unique_ptr<SubscriberConnection, Leave>;

}  // namespace wherry::message
