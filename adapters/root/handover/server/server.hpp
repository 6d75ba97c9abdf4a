// SPDX-License-Identifier: Apache-2.0
// Receives files that workers write directly into this process's memory.
//
//   wherry::root::WindowServer server("wherry://*:2000");
//   while (auto event = server.next()) {
//     if (event->kind == Event::Kind::posted) {
//       read(event->file.name(), event->file.bytes());  // in place, contiguous, until done
//       event->file.done();
//     }
//   }
//
// The server has a thread that answers the workers, so that a worker gets memory while the program is busy with a file.
//
// Leases: the memory is a pool of leases that all workers share. Each lease is one contiguous range.
//   - A worker holds a lease from its first `need` until it has left it and the files in it are done. Then any other
//     worker may get it, with its pages.
//   - A small lease has room for about four files of its first file's size. They lie one behind the other, and reuse
//     each other's places when they are done.
//   - A worker of small files keeps its lease until it posts slowly (unless memory is plentiful) or others need memory.
//   - A worker that fills a small lease before its files are read gets a larger one next.
//   - A lease of a unit has addresses for the largest file, and gets pages when its file grows into them.
//
// Budget: the pages of all leases count, granted or free. A request for more than is free waits in a queue. If every
// worker that could free memory waits itself, and no posted file is left to be done, one request is granted over the
// budget, up to the largest file. Hence there is no deadlock, and memory is bounded by the budget and these grants.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <wherry/address.hpp>
#include <wherry/stream.hpp>

namespace wherry::root {

/// A random identifier that a worker chooses once. It is the same after the worker has reconnected.
using WorkerId = std::array<std::uint8_t, 16>;

struct ServerOptions {
  std::size_t budget = std::size_t{512} << 20;  ///< bytes of all pages, granted or free
  std::size_t unit = std::size_t{2} << 20;      ///< bytes by which a lease grows; a multiple of the page size
  std::size_t least = std::size_t{128} << 10;   ///< bytes of the smallest lease; a multiple of the page size
  std::size_t max_file = std::size_t{1} << 30;  ///< bytes of the largest file; rounded down to whole units
  std::size_t leases_per_worker = 2;            ///< one is filled while the other is read
  std::size_t files_per_worker = 64;            ///< posted files that are not done
  /// Leases of a unit that are granted at once. More are granted if none has come free for `soon`. 0: three per
  /// processor, at least six.
  std::size_t leases_at_once = 0;
  std::chrono::milliseconds soon{1};             ///< about the cost of a lease of new pages
  std::chrono::milliseconds longest_stall{200};  ///< longest time without progress before a grant over the budget
  /// Where a worker that has finished may read the output: a path, or a folder that ends with a slash and contains the
  /// posted names. Sent to each worker in the greeting; empty is sent instead if it exceeds 4095 bytes.
  std::string output = {};
  /// Returns whether a file that a worker posts again was already processed. A worker posts a file again if its server
  /// died before it reported the file done. Called by the server's thread.
  std::function<bool(const WorkerId&, std::uint64_t sequence)> already = {};
};

/// A process that posts files.
struct Worker {
  std::uint64_t number = 0;  ///< counts connections from 1
  WorkerId id{};
  Peer peer;
  bool returns = false;  ///< if this server dies, the worker will reconnect to another as soon as it needs one
};

/// A posted file in the server's memory; movable. An honest worker does not touch it any more, but a hostile one could
/// still write there: copy bytes before you check and use them. Any thread, one at a time. May outlive the worker and
/// the server.
class PostedFile {
 public:
  class Impl;
  PostedFile() noexcept;
  explicit PostedFile(std::unique_ptr<Impl> impl) noexcept;
  PostedFile(PostedFile&&) noexcept;
  PostedFile& operator=(PostedFile&&) noexcept;
  /// Calls `refuse` if the file is still held.
  ~PostedFile();

  /// False before a file was moved in, and after `done` or `refuse`.
  [[nodiscard]] bool held() const noexcept { return impl_ != nullptr; }
  // The following may be called only while the file is held.
  [[nodiscard]] const Worker& worker() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  [[nodiscard]] std::uint64_t sequence() const noexcept;  ///< counts the worker's files from 1

  /// Reports the file as processed: the worker forgets it, and its memory becomes free.
  void done() noexcept;
  /// Rejects the file and closes its worker's session with this reason.
  void refuse(std::string_view reason) noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

struct Event {
  enum class Kind : std::uint8_t {
    joined,    ///< a worker connected
    posted,    ///< a worker posted `file`
    finished,  ///< the worker finished: all its files are done, and it posts no more
    gone,      ///< the worker died, left or was closed without finishing; its file that was not posted is lost
  };
  Kind kind = Kind::joined;
  std::shared_ptr<const Worker> worker = {};
  PostedFile file = {};
  std::string reason = {};  ///< only for `gone`
  std::size_t lost = 0;     ///< only for `gone`: bytes of the lease that the worker was writing
};

struct ServerStatistics {
  std::size_t workers = 0;             ///< connected workers
  std::size_t leases = 0;              ///< existing leases, granted or free
  std::size_t held = 0;                ///< bytes of the leases that are granted or contain files that are not done
  std::size_t warm = 0;                ///< bytes of the pages of free leases
  std::size_t waiting = 0;             ///< workers that wait for memory
  std::size_t over_budget_grants = 0;  ///< grants over the budget so far, made because no worker could make progress
};

/// Listens for workers and reports their files as events.
///
/// Threads: `next` by one thread at a time; all other functions by any thread.
class WindowServer {
 public:
  class Impl;
  /// Listens and starts the thread. Throws Error as wherry::listen does, and EINVAL for a bad option.
  explicit WindowServer(std::string_view address, ServerOptions options = {});
  WindowServer(const WindowServer&) = delete;
  WindowServer& operator=(const WindowServer&) = delete;
  /// Stops the thread and closes all connections. Files that are held stay readable.
  ~WindowServer();

  /// Blocks until there is an event. Empty after a timeout or `interrupt`. The events of one worker are in order.
  std::optional<Event> next(Timeout timeout = {});
  /// Makes the running `next` return empty; if none is running, the first one that would block.
  void interrupt() noexcept;
  /// Blocks until the thread has received all messages that workers sent before the call. Returns the number of queued
  /// events: that many calls of `next` do not block.
  std::size_t settle();
  /// Returns a descriptor that is readable while `next` would not block. The server owns it.
  [[nodiscard]] int descriptor() const noexcept;
  /// Returns the bound address, with `*` resolved.
  [[nodiscard]] const Address& local() const noexcept;
  /// Closes the worker's session with this reason. Does nothing if the worker is gone.
  void drop(std::uint64_t worker, std::string_view reason);
  [[nodiscard]] ServerStatistics statistics() const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::root
