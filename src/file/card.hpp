// SPDX-License-Identifier: Apache-2.0
// The card's process: it owns the segment of the cache, ends what dead clients had under way, and sleeps otherwise. Its
// own death leaves the clients running: the mapping stays, and the next card takes over the segment with its clients.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "file/cache_segment.hpp"
#include "file/large_pages.hpp"
#include "file/revocations_file.hpp"

namespace wherry::file {

struct CardOptions {
  std::string path;         ///< of the segment
  std::uint64_t cache = 0;  ///< bytes of blocks, if the segment is made
  bool until_last_client = false;
  std::chrono::milliseconds linger{5000};  ///< how long it waits for a client before it ends, if it is to end
  /// How long a dead client's marks stay: a child that it forked may not have marked its mappings yet.
  std::chrono::milliseconds marks_stay{1000};
};

class Cache;

class Card {
 public:
  /// Takes over the segment if processes use it, else makes a new one. Throws Error: EBUSY if another card has it, and
  /// what keeps it from being made, or used.
  explicit Card(CardOptions options);
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;
  ~Card();

  /// Serves until `stop` is readable (a descriptor, such as a signalfd), or the last client is gone and `linger` over,
  /// or the file was removed. Removes the segment then, unless clients are left. Sleeps while nothing happens.
  void run(int stop);

  [[nodiscard]] std::size_t clients() const { return clients_.size(); }
  [[nodiscard]] std::uint64_t cache_bytes() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    std::uint64_t pid = 0;
    UniqueFd process;                       // readable once it is dead
    std::optional<Clock::time_point> dead;  // since then its marks wait
  };

  bool take();
  void adopt(UniqueFd file);
  void watch();
  void look();
  void look_at(std::uint64_t number);
  void look_at_self(std::uint64_t number);
  void welcome(std::uint64_t number, std::uint64_t pid);
  void bury(std::uint64_t number, Client& client);
  void forget_marks();
  bool end();
  void handle(std::uint64_t what, bool& over);
  [[nodiscard]] int sleep_for() const;

  CardOptions options_;
  std::optional<RevocationsFile> revocations_;
  UniqueFd file_;
  Segment segment_;
  LargePages large_pages_;
  UniqueFd news_;    // inotify: the file was closed by a process, or removed
  UniqueFd events_;  // epoll
  std::map<std::uint64_t, Client> clients_;
  std::optional<Clock::time_point> alone_since_;
};

/// Starts this user's card unless it runs (`program card --until-last-client`, detached from this process in every
/// way), and makes this process a client for as long as it lives, through exec too. Throws Error with the card's own
/// message if it could not start.
void ensure_card(const std::string& program);
/// The same with `cache` as the client.
void ensure_card(const std::string& program, Cache& cache);
/// Whether it lives now.
bool has_card() noexcept;

}  // namespace wherry::file
