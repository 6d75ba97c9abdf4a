// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "channel/channel.hpp"
#include "collect/answers.hpp"
#include "collect/batch.hpp"
#include "collect/destination.hpp"
#include "collect/report.hpp"
#include "common/content_hash.hpp"
#include "ship/layout/wire.hpp"

namespace wherry::tools {

/// One shipper's session at the collector: reads its records and stores their paths. The shipper's data is not trusted,
/// and cannot affect other sessions.
class Session {
 public:
  /// @param warn  called for every refusal at once
  Session(Channel& channel, Destination& destination, LiveTotals& totals, std::function<void(const std::string&)> warn);

  /// Serves the shipper until its session ends. Never throws.
  ShipperReport run() noexcept;

 private:
  // The time without arriving bytes after which a batch is settled: the time that the last settle took, within these
  // limits. A shipper that filled its ring and slept meanwhile gets that time to fill it again, however slow the disk
  // is.
  static constexpr std::chrono::milliseconds kLeastIdle{20};
  static constexpr std::chrono::milliseconds kMostIdle{1000};  // the longest time until arrived files become visible

  // The file whose records are arriving. `content` is empty after a refusal: the rest is read and discarded.
  struct Incoming {
    std::uint64_t id;
    std::string path;
    std::uint32_t mode;
    timespec mtime;
    std::uint64_t length;    // or the upper limit
    bool length_known;       // before file_end
    std::uint64_t position;  // where the next data or hole begins
    std::uint64_t bytes;     // data so far
    std::unique_ptr<PendingFile> content;
  };

  void greet();
  void serve();
  void take(const layout::ShipRecord& record);
  void take_entry(const layout::ShipRecord& record);
  void make_directory(const std::string& path, std::uint32_t mode, const timespec& mtime);
  void make_symlink(const std::string& path, const std::string& target, const timespec& mtime);
  void begin_file(const layout::ShipRecord& record);
  void take_data(const layout::ShipRecord& record);
  void store_data(std::uint64_t length, std::uint64_t offset);
  void end_file(const layout::ShipRecord& record);
  void verify(const layout::ShipRecord& record);
  template <class Open>
  auto open_or_settle(Open open);
  void settle_while_idle();
  void settle();
  void abandon(const layout::ShipRecord& record);
  void goodbye(const layout::ShipRecord& record);

  void read(std::span<std::byte> bytes);
  std::string read_path(const layout::ShipRecord& record);
  std::string read_text(std::size_t bytes, std::size_t limit, const char* what);
  std::uint64_t next_id(const layout::ShipRecord& record);
  Incoming& incoming(const layout::ShipRecord& record);
  void touch(const std::shared_ptr<FileSystem>& file_system, std::string_view directory);
  void report_stored();
  void refuse_incoming(const Refusal& refusal);
  void refuse(std::uint64_t id, const std::string& path, const Refusal& refusal);
  void report_failure(std::uint64_t id, const std::string& path, const Refusal& refusal);
  void settle_what_arrived() noexcept;
  void leave() noexcept;
  void flush_directories();
  void flush_file_systems();
  void not_durable(int error);

  Channel& channel_;
  Destination& destination_;
  LiveTotals& totals_;
  std::function<void(const std::string&)> warn_;
  Answers answers_;
  ContentHash hash_;
  ShipperReport report_;
  std::optional<Incoming> file_;
  Batch batch_;
  std::vector<std::shared_ptr<FileSystem>> touched_;  // file systems with new names
  std::set<std::string, std::less<>> named_in_;       // directories with new names, if each needs its own flush
  std::chrono::milliseconds idle_ = kLeastIdle;       // time without arriving bytes after which a batch is settled
  std::uint64_t last_id_ = 0;                         // the last id that began
  std::uint64_t done_id_ = 0;                         // stored, refused, or in the batch
};

}  // namespace wherry::tools
