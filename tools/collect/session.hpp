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

/// One shipper's session at the collector: reads its records and stores what they bring. Nothing that the shipper sends
/// is trusted; nothing it does reaches beyond its own session.
class Session {
 public:
  /// @param warn  is told of every refusal as it happens
  Session(Channel& channel, Destination& destination, LiveTotals& totals, std::function<void(const std::string&)> warn);

  /// Serves the shipper to its end. Never throws.
  ShipperReport run() noexcept;

 private:
  // How long nothing arrives before what has arrived is settled: as long as it took to settle the batch before. A
  // shipper that filled its ring and slept meanwhile gets that time to run and fill it again, however slow the disk is.
  static constexpr std::chrono::milliseconds kLeastIdle{20};
  static constexpr std::chrono::milliseconds kMostIdle{1000};  // then files shall be seen to come

  // The file that records are arriving of. `content` is empty once it was refused: the rest is read and dropped.
  struct Incoming {
    std::uint64_t id;
    std::string path;
    std::uint32_t mode;
    timespec mtime;
    std::uint64_t length;    // at most
    bool length_known;       // before the end
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
  void tell_what_is_stored();
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
  std::vector<std::shared_ptr<FileSystem>> touched_;  // where names were made
  std::set<std::string, std::less<>> named_in_;       // the directories, where each needs a flush of its own
  std::chrono::milliseconds idle_ = kLeastIdle;       // so long nothing arrives before a batch is settled
  std::uint64_t last_id_ = 0;                         // begun
  std::uint64_t done_id_ = 0;                         // stored or refused, or in the batch
};

}  // namespace wherry::tools
