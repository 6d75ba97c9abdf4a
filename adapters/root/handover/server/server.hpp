// SPDX-License-Identifier: Apache-2.0
// Receives files that workers write straight into this process's memory.
//
//   wherry::root::WindowServer server("wherry://*:2000");
//   while (auto event = server.next()) {
//     if (event->kind == Event::Kind::posted) {
//       read(event->file.name(), event->file.bytes());  // in place, contiguous, until done
//       event->file.done();
//     }
//   }
//
// A thread of the server's own answers the workers, so that a worker gets memory while the program is busy with a file.
// The memory is a pool of leases that all workers share; each is one contiguous range. The lease of a small file has
// room for a few; a worker that fills it before its files are read gets a larger one next. A lease of a unit has
// addresses for the largest file, and gets pages when its file grows into them. A worker holds a lease from the first
// byte it needs there until its file is done; then any other may have it, pages and all. Small files lie one behind the
// other in one lease, and take each other's places as they are done; the worker keeps that lease until it is slow,
// unless memory is plentiful, or until others wait for memory.
//
// Budget: all leases with pages count, granted or free. A request for more than is free waits in a queue. If every
// worker that could free memory waits itself, and no posted file is left to be done, the first request is granted over
// the budget, up to the largest file: there is no deadlock, and memory is bounded by the budget and these grants.
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

/// A worker's name for itself: random, made once, the same after it connected again.
using WorkerId = std::array<std::uint8_t, 16>;

struct ServerOptions {
  std::size_t budget = std::size_t{512} << 20;   ///< bytes of all that has pages
  std::size_t unit = std::size_t{2} << 20;       ///< by what a lease grows; whole pages
  std::size_t least = std::size_t{128} << 10;    ///< of a worker of small files, at first; whole pages
  std::size_t max_file = std::size_t{1} << 30;   ///< the largest file; whole units
  std::size_t leases_per_worker = 2;             ///< one fills while the other is read
  std::size_t files_per_worker = 64;             ///< that are not done
  std::size_t leases_at_once = 0;                ///< of a unit; more if none comes free soon; 0: by the processors
  std::chrono::milliseconds soon{1};             ///< what a lease of new pages costs
  std::chrono::milliseconds longest_stall{200};  ///< nothing moves for so long before a grant over the budget
  /// Where a worker that has finished may read what became of its files: a path, or a folder of the files' names, which
  /// ends with a slash. Workers are told as they come; at most 4095 bytes, else they are not.
  std::string output = {};
  /// Whether a file that a worker posts again, because its server died before saying that it was done, is already where
  /// it belongs. Called by the server's thread.
  std::function<bool(const WorkerId&, std::uint64_t sequence)> already = {};
};

/// A process that posts files.
struct Worker {
  std::uint64_t number = 0;  ///< counts connections from 1
  WorkerId id{};
  Peer peer;
  bool returns = false;  ///< when this server dies, it will look for another: when it needs one
};

/// A file in this server's memory. The worker has it no more, but a hostile one could still write there: bytes that are
/// checked and then used must be copied first. From any thread, one at a time; may outlive worker and server.
class PostedFile {
 public:
  class Impl;
  PostedFile() noexcept;
  explicit PostedFile(std::unique_ptr<Impl> impl) noexcept;
  PostedFile(PostedFile&&) noexcept;
  PostedFile& operator=(PostedFile&&) noexcept;
  /// As `refuse`, if it is held still.
  ~PostedFile();

  [[nodiscard]] bool held() const noexcept { return impl_ != nullptr; }
  // Only while it is held.
  [[nodiscard]] const Worker& worker() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  [[nodiscard]] std::uint64_t sequence() const noexcept;  ///< counts the worker's files from 1

  /// The file is safe: the worker forgets it, the memory is free.
  void done() noexcept;
  /// The file is not wanted: its worker's session is closed, for this reason.
  void refuse(std::string_view reason) noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

struct Event {
  enum class Kind : std::uint8_t {
    joined,    ///< a worker connected
    posted,    ///< `file` is there
    finished,  ///< the worker has posted all it wanted to, and all of it was done
    gone,      ///< the worker died, left or was closed without finishing; what it had not posted is lost
  };
  Kind kind = Kind::joined;
  std::shared_ptr<const Worker> worker = {};
  PostedFile file = {};
  std::string reason = {};  ///< of gone
  std::size_t lost = 0;     ///< of gone: bytes of an unfinished file that it may have written
};

struct ServerStatistics {
  std::size_t workers = 0;             ///< connected
  std::size_t leases = 0;              ///< that exist
  std::size_t held = 0;                ///< bytes of leases that workers fill or that wait to be done
  std::size_t warm = 0;                ///< bytes of leases that are free and have pages
  std::size_t waiting = 0;             ///< workers that wait for memory
  std::size_t over_budget_grants = 0;  ///< made for a worker because none could make progress
};

/// Threads: `next` by one at a time; the rest from any.
class WindowServer {
 public:
  class Impl;
  /// Listens and starts the thread. Throws Error as wherry::listen does, and EINVAL for a bad option.
  explicit WindowServer(std::string_view address, ServerOptions options = {});
  WindowServer(const WindowServer&) = delete;
  WindowServer& operator=(const WindowServer&) = delete;
  /// Closes; workers see the connection end. Files that are held stay readable.
  ~WindowServer();

  /// Blocks until something happened. Empty after a timeout or `interrupt`. All of a worker's events come in order.
  std::optional<Event> next(Timeout timeout = {});
  /// Makes the `next` under way, or else the one that would block next, return.
  void interrupt() noexcept;
  /// Waits until the thread has received what workers sent before the call. Returns how many events wait: `next` does
  /// not block so many times.
  std::size_t settle();
  /// Readable while `next` would not block. Belongs to the server.
  [[nodiscard]] int descriptor() const noexcept;
  /// The address bound, with `*` resolved.
  [[nodiscard]] const Address& local() const noexcept;
  /// Closes the worker's session, for this reason. Nothing if it is not there any more.
  void drop(std::uint64_t worker, std::string_view reason);
  [[nodiscard]] ServerStatistics statistics() const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::root
