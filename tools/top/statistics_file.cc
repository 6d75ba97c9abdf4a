// SPDX-License-Identifier: Apache-2.0
#include "top/statistics_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string_view>

#include "base/printable.hpp"
#include "base/readable.hpp"
#include "base/unique_fd.hpp"
#include "fabric/fabric.hpp"

namespace wherry::tools {
namespace {

using layout::EndpointKind;
using layout::kStatisticsBytes;
using layout::StatisticsHeader;
using layout::StatisticsRecord;
using layout::TransferClass;

constexpr std::size_t kPageBytes = 4096;

// The page, mapped read-only. Only bytes below `readable_` may be read. The bytes behind were never written, and a read
// would allocate memory at the expense of the inspected process.
class Mapping {
 public:
  explicit Mapping(int file) : file_(file) {
    struct stat status{};
    if (fstat(file, &status) != 0 || status.st_size != static_cast<off_t>(kStatisticsBytes)) return;
    const int seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return;
    const off_t hole = lseek(file, 0, SEEK_HOLE);
    void* mapped = mmap(nullptr, kStatisticsBytes, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) return;
    start_ = static_cast<const std::byte*>(mapped);
    readable_ = hole < 0 ? kStatisticsBytes : static_cast<std::size_t>(hole);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (start_ != nullptr) munmap(const_cast<std::byte*>(start_), kStatisticsBytes);
  }

  [[nodiscard]] const StatisticsHeader* header() const {
    return readable_ >= sizeof(StatisticsHeader) ? reinterpret_cast<const StatisticsHeader*>(start_) : nullptr;
  }
  // Null if the page was never written: the process has no such transfers.
  [[nodiscard]] const TransferClass* transfers(std::size_t place) const {
    const std::size_t offset = layout::kTransferClassesOffset + place * sizeof(TransferClass);
    const auto page = static_cast<off_t>(offset / kPageBytes * kPageBytes);
    if (place >= layout::kTransferClasses || start_ == nullptr) return nullptr;
    if (lseek(file_, page, SEEK_DATA) != page) return nullptr;
    return reinterpret_cast<const TransferClass*>(start_ + offset);
  }
  // Null from the first unused record on: records are used in order.
  [[nodiscard]] const StatisticsRecord* record(std::uint32_t index) const {
    const std::size_t offset = layout::kStatisticsRecordsOffset + index * sizeof(StatisticsRecord);
    if (index >= layout::kStatisticsRecords || offset + sizeof(StatisticsRecord) > readable_) return nullptr;
    return reinterpret_cast<const StatisticsRecord*>(start_ + offset);
  }

 private:
  int file_;
  const std::byte* start_ = nullptr;
  std::size_t readable_ = 0;
};

// Loads a field that its owner may change concurrently.
template <class T>
T claim(const T& field) {
  return __atomic_load_n(&field, __ATOMIC_RELAXED);
}
std::uint64_t claim(const layout::Counter& counter) { return counter.load(std::memory_order_relaxed); }

template <std::size_t N>
std::string claim_text(const char (&field)[N]) {
  std::string text;
  for (const char& c : field) {
    const char now = claim(c);
    if (now == '\0') break;
    text += now;
  }
  return printable(text);
}

Address address_of(std::uint16_t node, std::uint16_t port) {
  Address address{"", node, port};
  if (port == layout::kNoPort) address.port.reset();
  return address;
}

void read_description(const StatisticsRecord& record, EndpointReading& reading) {
  reading.kind = static_cast<EndpointKind>(claim(record.kind));
  reading.local = address_of(claim(record.local_node), claim(record.local_port));
  reading.peer = address_of(claim(record.peer_node), claim(record.peer_port));
  reading.peer_pid = claim(record.peer_pid);
  reading.fabric = claim_text(record.fabric);
  reading.peer_host = claim_text(record.peer_host);
  reading.opened_ns = claim(record.opened_ns);
  reading.send_capacity = claim(record.send_capacity);
  reading.receive_capacity = claim(record.receive_capacity);
}

void read_counters(const StatisticsRecord& record, EndpointReading& reading) {
  reading.bytes_sent = claim(record.bytes_sent);
  reading.sends = claim(record.sends);
  reading.send_sleeps = claim(record.send_sleeps);
  reading.send_fill = claim(record.send_fill);
  reading.data_wakes = claim(record.data_wakes);
  reading.bytes_received = claim(record.bytes_received);
  reading.receives = claim(record.receives);
  reading.receive_sleeps = claim(record.receive_sleeps);
  reading.receive_fill = claim(record.receive_fill);
  reading.space_wakes = claim(record.space_wakes);
  reading.asleep_sending = claim(record.asleep_sending) != 0;
  reading.asleep_receiving = claim(record.asleep_receiving) != 0;
}

// False for values that no Wherry process writes. Other values may be wrong, but can be shown and divided by safely.
bool is_plausible(EndpointReading& reading) {
  if (reading.kind != EndpointKind::stream && reading.kind != EndpointKind::listener) return false;
  if (reading.send_capacity > fabric::kMaxSegmentBytes || reading.receive_capacity > fabric::kMaxSegmentBytes)
    return false;
  reading.send_fill = std::min(reading.send_fill, reading.send_capacity);
  reading.receive_fill = std::min(reading.receive_fill, reading.receive_capacity);
  return true;
}

// Empty if the record is free, or was freed or reused during the read.
std::optional<EndpointReading> read_record(const StatisticsRecord& record) {
  EndpointReading reading;
  reading.generation = record.generation.load(std::memory_order_acquire);  // STATISTICS-RECORD
  if (reading.generation % 2 == 0) return std::nullopt;
  read_description(record, reading);
  read_counters(record, reading);
  // STATISTICS-RECORD: if a load above saw a store of the record's next use, the load below sees the generation that
  // came before it.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (record.generation.load(std::memory_order_relaxed) != reading.generation || !is_plausible(reading))
    return std::nullopt;
  return reading;
}

TransfersReading::Way read_way(const layout::TransferWay& way) {
  return {.calls = claim(way.calls),
          .bytes = claim(way.bytes),
          .explored = claim(way.explored),
          .estimate_ns = claim(way.estimate_ns)};
}

void read_transfers(const Mapping& mapping, ProcessReading& process) {
  for (std::size_t place = 0; place < layout::kTransferClasses; ++place) {
    const TransferClass* const one = mapping.transfers(place);
    if (one == nullptr) continue;
    const TransfersReading reading{
        .traits = layout::transfer_traits(place), .host = read_way(one->host), .kernel = read_way(one->kernel)};
    if (reading.host.calls != 0 || reading.kernel.calls != 0) process.transfers.push_back(reading);
  }
}

}  // namespace

std::optional<ProcessReading> read_statistics_file(const std::string& path, std::uint64_t pid) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return std::nullopt;
  const Mapping mapping(file.get());
  const StatisticsHeader* header = mapping.header();
  if (header == nullptr || claim(header->version) != layout::kStatisticsVersion || claim(header->pid) != pid) return {};
  ProcessReading process;
  process.program = claim_text(header->program);
  process.job = claim_text(header->job);
  process.node = claim(header->node);
  process.started_ns = claim(header->started_ns);
  process.endpoints_not_shown = claim(header->endpoints_not_shown);
  for (std::uint32_t i = 0; const StatisticsRecord* record = mapping.record(i); ++i) {
    auto endpoint = read_record(*record);
    if (!endpoint) continue;
    endpoint->record = i;
    process.endpoints.push_back(std::move(*endpoint));
  }
  read_transfers(mapping, process);
  return process;
}

}  // namespace wherry::tools
