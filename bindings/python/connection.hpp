// SPDX-License-Identifier: Apache-2.0
// The base of Python's streams and framed streams: the turns of the two directions, closing, descriptors.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

#include <wherry/wherry.hpp>

#include "bindings/python/interpreter.hpp"
#include "bindings/python/memory.hpp"

namespace wherry::python {

/// Copies up to this size are made with the GIL: releasing it takes longer than the copy.
inline constexpr std::size_t kShortCopy = std::size_t{64} << 10;

/// The stream of the C++ library. Views of its rings may outlive the Python object that closed it.
struct HeldStream {
  Stream bytes;
  FramedStream messages;  ///< if open, it owns the stream

  [[nodiscard]] Stream& stream() noexcept { return messages.is_open() ? messages.stream() : bytes; }
};

/// Connection of a Stream or FramedStream in Python.
///
/// Threads: any. One thread sends and one receives at a time; the others wait for their turn. `close` and `cancel` end
/// a call of another thread with ECANCELED. Fork: in a child every call but close fails with EBADF.
class Connection {
 public:
  explicit Connection(std::shared_ptr<HeldStream> held);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  enum class Direction { sending, receiving };
  /// Holds the turn of one direction and the stream, for the time of a call.
  struct Call {
    std::shared_ptr<Turn> turn;
    Taken taken;
    std::shared_ptr<HeldStream> held;

    [[nodiscard]] Stream& stream() const noexcept { return held->bytes; }
    [[nodiscard]] FramedStream& messages() const noexcept { return held->messages; }
  };
  /// Throws Error(EBADF) if the connection is closed or inherited; TimeoutError.
  [[nodiscard]] Call begin(Direction direction, const Deadline& deadline, const char* operation);
  /// The stream, for calls that any thread may make at any time. Throws Error(EBADF).
  [[nodiscard]] HeldStream& held(const char* operation) const;
  /// The same, but the result keeps the stream for a call without the GIL.
  [[nodiscard]] std::shared_ptr<HeldStream> share(const char* operation) const {
    (void)held(operation);
    return held_;
  }
  /// Takes both turns, and moves the stream out of this object, which is then closed.
  [[nodiscard]] std::shared_ptr<HeldStream> take_over(const char* operation);
  /// Makes all later receives take this turn, which is a poller's.
  void receive_in_turn_of(std::shared_ptr<Turn> turn);
  [[nodiscard]] bool receives_in_turn_of(const std::shared_ptr<Turn>& turn) const { return receiving_ == turn; }

  [[nodiscard]] bool is_closed() const noexcept { return held_ == nullptr; }
  [[nodiscard]] std::string peer_address() const { return peer_; }
  /// Throws an exception that names the peer.
  [[noreturn]] void fail(const Result& result, const char* operation) const;
  /// Finishes sending and frees the stream. Views in use keep its memory.
  void close(std::optional<double> timeout);
  void finish_sending();

  LentViews received;  ///< views of peek and of the receive of framed streams
  LentViews reserved;  ///< views of reserve

 private:
  [[nodiscard]] bool is_inherited() const noexcept { return generation_ != fork_generation(); }
  void end_views() noexcept;

  std::shared_ptr<HeldStream> held_;
  std::shared_ptr<Turn> sending_ = std::make_shared<Turn>();
  std::shared_ptr<Turn> receiving_ = std::make_shared<Turn>();
  std::string peer_;
  std::uint32_t generation_ = fork_generation();
};

/// A byte stream (wherry.Stream).
class ByteStream : public Connection {
 public:
  explicit ByteStream(Stream stream);
};

void bind_connection(nanobind::module_& module);
void bind_stream(nanobind::module_& module);
void bind_setup(nanobind::module_& module);
void bind_framed(nanobind::module_& module);
void bind_poller(nanobind::module_& module);
void bind_publish(nanobind::module_& module);
void bind_subscribe(nanobind::module_& module);
void bind_mailbox(nanobind::module_& module);
void bind_windows(nanobind::module_& module);
void bind_files(nanobind::module_& module);

}  // namespace wherry::python
