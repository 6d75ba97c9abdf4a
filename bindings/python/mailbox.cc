// SPDX-License-Identifier: Apache-2.0
// wherry.Mailbox.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/connection.hpp"
#include "bindings/python/errors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace wherry::python {
namespace {

using Seconds = std::optional<double>;
using Number = Mailbox::Peer;

constexpr std::size_t kFirstBuffer = 4096;

Layout layout_of(const std::string& name) {
  if (name == "equal") return Layout::equal;
  if (name == "topology") return Layout::topology;
  if (name == "adaptive") return Layout::adaptive;
  throw nb::value_error("a layout is 'equal', 'topology' or 'adaptive'");
}

/// A message whose send was interrupted by a timeout or a signal. Its rest must be sent before any other message to
/// that peer.
struct Unfinished {
  std::vector<std::byte> message;
  std::uint64_t taken = 0;
};

class PythonMailbox {
 public:
  PythonMailbox(const MailboxOptions& options, std::size_t max_message)
      : mailbox_(std::in_place, options), buffer_(kFirstBuffer), max_message_(max_message) {}

  /// The C++ mailbox. Throws Error(EBADF).
  Mailbox& mailbox(const char* operation) {
    if (closing_ || generation_ != fork_generation()) raise_result(Result::failure(EBADF), operation, "");
    return *mailbox_;
  }
  Taken begin(const Deadline& deadline, const char* operation) {
    (void)mailbox(operation);
    Taken taken = take_turn(turn_, deadline, operation);
    (void)mailbox(operation);
    return taken;
  }

  std::size_t send(Number to, nb::handle buffer, Seconds timeout) {
    const Deadline deadline(timeout);
    const Buffer data(buffer, Buffer::Use::read);
    const Taken taken = begin(deadline, "send");
    finish_last(to, deadline);
    send_from(to, data.bytes(), 0, deadline);
    return data.bytes().size();
  }
  bool try_send(Number to, nb::handle buffer) {
    const Buffer data(buffer, Buffer::Use::read);
    const Taken taken = begin(Deadline(0.0), "try_send");
    if (unfinished_.contains(to)) return false;
    const Result result = mailbox_->try_send(to, std::span<const std::byte>(data.bytes()));
    if (result.failed()) fail(to, result, "try_send");
    return result.ok();
  }

  /// None: the call would block. For `receive`: a loss or an interruption.
  nb::object receive(const Deadline& deadline, bool may_block, const char* operation) {
    const Taken taken = begin(deadline, operation);
    Number from = Mailbox::kNoPeer;
    Result result = mailbox_->try_receive(std::span(buffer_), from);
    while (true) {
      if (result.failed() && result.error == EMSGSIZE) {
        make_room(result, from, operation);
        result = mailbox_->try_receive(std::span(buffer_), from);
      } else if (result.would_block() && may_block && !has_losses() && !interrupted_.exchange(false)) {
        result = wait_for_message(from, deadline);
      } else {
        break;
      }
    }
    if (result.would_block()) return nb::none();
    if (result.failed()) fail(from, result, operation);
    return nb::make_tuple(from, nb::bytes(buffer_.data(), result.bytes));
  }
  nb::list losses() {
    const Taken taken = begin(Deadline(std::nullopt), "losses");
    (void)has_losses();
    nb::list all;
    for (const Mailbox::Loss& loss : std::exchange(losses_, {})) all.append(nb::make_tuple(loss.peer, loss.error));
    return all;
  }
  void forget(Number peer) {
    const Taken taken = begin(Deadline(std::nullopt), "forget");
    unfinished_.erase(peer);
    mailbox_->forget(peer);
  }
  bool wait(Seconds timeout) {
    const Deadline deadline(timeout);
    const Taken taken = begin(deadline, "wait");
    const Result result = in_slices(deadline, [&](std::chrono::nanoseconds slice) {
      return mailbox_->wait(slice) ? Result::moved(1) : Result::failure(ETIMEDOUT);
    });
    interrupted_ = false;
    return result.ok();
  }
  void set_neighbours(const nb::dict& weights) {
    const Taken taken = begin(Deadline(std::nullopt), "set_neighbours");
    std::vector<Mailbox::Neighbour> neighbours;
    for (const auto& [peer, weight] : weights) {
      neighbours.push_back({.peer = nb::cast<Number>(peer), .weight = nb::cast<std::uint32_t>(weight)});
    }
    mailbox_->set_neighbours(neighbours);
  }
  void interrupt() {
    Mailbox& mailbox = this->mailbox("interrupt");
    interrupted_ = true;
    mailbox.interrupt();
  }
  void close() {
    if (closing_.exchange(true)) return;
    if (generation_ == fork_generation()) {
      mailbox_->interrupt();
      const Taken taken = take_turn(turn_, Deadline(std::nullopt), "close");
      mailbox_.reset();
    } else {
      mailbox_.reset();
    }
  }
  [[nodiscard]] bool is_closed() const noexcept { return closing_; }

 private:
  [[noreturn]] void fail(Number peer, const Result& result, const char* operation) {
    raise_result(result, operation, peer == Mailbox::kNoPeer ? "" : mailbox_->address_of(peer));
  }
  /// Grows the buffer. A message that is longer than the buffer stays with its sender meanwhile.
  void make_room(const Result& result, Number from, const char* operation) {
    if (result.bytes > max_message_) fail(from, result, operation);
    buffer_.resize(result.bytes);
  }
  Result wait_for_message(Number& from, const Deadline& deadline) {
    return in_slices(deadline, [&](std::chrono::nanoseconds slice) {
      if (closing_) return Result::failure(ECANCELED);
      return mailbox_->receive(std::span(buffer_), from, slice);
    });
  }
  /// Takes the losses from the C++ mailbox, which can then wait for messages again.
  bool has_losses() {
    std::array<Mailbox::Loss, 16> some{};
    while (const std::size_t count = mailbox_->losses(some)) {
      losses_.insert(losses_.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return !losses_.empty();
  }
  void finish_last(Number to, const Deadline& deadline) {
    const auto found = unfinished_.find(to);
    if (found == unfinished_.end()) return;
    const Unfinished last = std::move(found->second);
    unfinished_.erase(found);
    send_from(to, last.message, last.taken, deadline);
  }
  void send_from(Number to, std::span<const std::byte> message, std::uint64_t taken, const Deadline& deadline) {
    const iovec piece{const_cast<std::byte*>(message.data()), message.size()};
    Mailbox::Outgoing outgoing{.pieces = std::span(&piece, 1), .bytes = message.size(), .taken = taken};
    const auto keep = [&] {
      if (outgoing.taken == 0 || outgoing.taken == outgoing.bytes) return;
      unfinished_[to] = {.message = {message.begin(), message.end()}, .taken = outgoing.taken};
    };
    try {
      const Result result = in_slices(deadline, [&](std::chrono::nanoseconds slice) {
        if (closing_) return Result::failure(ECANCELED);
        return mailbox_->send(to, outgoing, slice);
      });
      if (result.failed()) fail(to, Result::failure(result.error, static_cast<std::size_t>(outgoing.taken)), "send");
    } catch (...) {
      keep();
      throw;
    }
  }

  std::optional<Mailbox> mailbox_;
  Turn turn_;
  std::vector<std::byte> buffer_;
  std::size_t max_message_;
  std::vector<Mailbox::Loss> losses_;
  std::map<Number, Unfinished> unfinished_;
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> closing_{false};
  std::uint32_t generation_ = fork_generation();
};

nb::object address_of(PythonMailbox& self, Number peer) {
  const std::string address = self.mailbox("address_of").address_of(peer);
  return address.empty() ? nb::none() : nb::object(nb::str(address.c_str()));
}

void bind_peers(nb::class_<PythonMailbox>& type) {
  type.def(
          "listen",
          [](PythonMailbox& self, const std::string& address) {
            const Taken taken = self.begin(Deadline(std::nullopt), "listen");
            self.mailbox("listen").listen(address);
          },
          "address"_a, "Lets peers connect. At most once. `*` as port is a free port; local returns it.")
      .def(
          "connect",
          [](PythonMailbox& self, const std::string& address, Seconds wait) {
            const Deadline deadline(wait);
            const Taken taken = self.begin(Deadline(std::nullopt), "connect");
            return self.mailbox("connect").connect(address, deadline.remaining());
          },
          "address"_a, "wait"_a = nb::none(),
          "Connects to the mailbox that listens there, or will, and returns the peer's number. Never blocks: messages "
          "may be sent at once. Without a listener it retries for wait seconds (None: the configured time). Then the "
          "peer is a loss.")
      .def("address_of", &address_of, "peer"_a, nb::sig("def address_of(self, peer: int) -> str | None"),
           "The address on which the peer's mailbox listens, by its own statement.")
      .def("losses", &PythonMailbox::losses, nb::sig("def losses(self) -> list[tuple[int, int]]"),
           "The peers whose connection has ended since the last call, each with an errno; 0: it closed in order.")
      .def("forget", &PythonMailbox::forget, "peer"_a,
           "Ends the pair, unless it has ended, and frees the peer's number.")
      .def_prop_ro(
          "local", [](PythonMailbox& self) { return self.mailbox("local").local().to_string(); },
          "The address on which the mailbox listens, with * resolved.")
      .def_prop_ro(
          "peers", [](PythonMailbox& self) { return self.mailbox("peers").peers(); },
          "The number of peers that are not lost.")
      .def(
          "set_layout",
          [](PythonMailbox& self, const std::string& layout) {
            const Taken taken = self.begin(Deadline(std::nullopt), "set_layout");
            self.mailbox("set_layout").set_layout(layout_of(layout));
          },
          "layout"_a)
      .def(
          "set_budget",
          [](PythonMailbox& self, std::size_t bytes) {
            const Taken taken = self.begin(Deadline(std::nullopt), "set_budget");
            self.mailbox("set_budget").set_budget(bytes);
          },
          "bytes"_a)
      .def("set_neighbours", &PythonMailbox::set_neighbours, "weights"_a,
           nb::sig("def set_neighbours(self, weights: dict[int, int]) -> None"),
           "For the layout 'topology': declares the peers that send to this mailbox, each with its weight.");
}

void bind_messages(nb::class_<PythonMailbox>& type) {
  type.def("send", &PythonMailbox::send, "to"_a, "buffer"_a, "timeout"_a = nb::none(),
           nb::sig("def send(self, to: int, buffer: Buffer, timeout: float | None = None) -> int"),
           "Blocks until the whole message was sent. If a timeout interrupts it, its rest is sent before the next "
           "message to that peer.")
      .def("try_send", &PythonMailbox::try_send, "to"_a, "buffer"_a,
           nb::sig("def try_send(self, to: int, buffer: Buffer) -> bool"),
           "Sends the whole message or nothing, without blocking. False: no room now. Raises an Error with EMSGSIZE if "
           "the message is longer than the section of a sender that has not sent yet.")
      .def(
          "receive",
          [](PythonMailbox& self, Seconds timeout) { return self.receive(Deadline(timeout), true, "receive"); },
          "timeout"_a = nb::none(),
          nb::sig("def receive(self, timeout: float | None = None) -> tuple[int, bytes] | None"),
          "Blocks until there is a message, and returns its sender's number and its bytes. None: losses() has a loss, "
          "or interrupt was called.")
      .def(
          "try_receive", [](PythonMailbox& self) { return self.receive(Deadline(0.0), false, "try_receive"); },
          nb::sig("def try_receive(self) -> tuple[int, bytes] | None"),
          "Receives without blocking. None: no message now.")
      .def("wait", &PythonMailbox::wait, "timeout"_a = nb::none(),
           "Blocks until there is something to do: a message, room to send, a loss, an interruption. False: the "
           "timeout has passed.")
      .def(
          "progress",
          [](PythonMailbox& self) {
            const Taken taken = self.begin(Deadline(0.0), "progress");
            return self.mailbox("progress").progress();
          },
          "As wait, without blocking.")
      .def("interrupt", &PythonMailbox::interrupt,
           "Ends the current wait, or else the next. May be called from any thread.")
      .def(
          "fileno", [](PythonMailbox& self) { return self.mailbox("fileno").descriptor(); },
          "A descriptor that is readable while wait might return at once. A progress() that returns False silences it.")
      .def("close", &PythonMailbox::close, "Closes the mailbox: peers receive everything sent so far, then the end.")
      .def_prop_ro("closed", &PythonMailbox::is_closed)
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> typing.Self"))
      .def(
          "__exit__", [](PythonMailbox& self, const nb::args&) { self.close(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

}  // namespace

void bind_mailbox(nb::module_& module) {
  nb::class_<PythonMailbox> type(
      module, "Mailbox", nb::is_weak_referenceable(),
      "A receiver's bounded buffer, divided into sections, one for each sender; and this program's sections in the "
      "mailboxes of others. Messages of any length, in order per sender.");
  type.def(
      "__init__",
      [](PythonMailbox* self, std::size_t budget, std::size_t header, const std::string& layout, std::size_t most_peers,
         std::size_t max_message) {
        const MailboxOptions options{
            .budget = budget, .header = header, .layout = layout_of(layout), .most_peers = most_peers};
        new (self) PythonMailbox(options, max_message);
      },
      nb::kw_only(), "budget"_a = std::size_t{64} << 10, "header"_a = 128, "layout"_a = "adaptive",
      "most_peers"_a = 1024, "max_message"_a = std::size_t{64} << 20,
      "budget: bytes of all sections together. header: least section of a sender. layout: 'equal', 'topology' or "
      "'adaptive'. max_message: a longer incoming message is refused with EMSGSIZE.");
  bind_peers(type);
  bind_messages(type);
}

}  // namespace wherry::python
