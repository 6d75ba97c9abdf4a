// SPDX-License-Identifier: Apache-2.0
// The writing side of the statistics page (layout/statistics_page.hpp): one memfd per process, made when the first
// endpoint opens. A process of the same user finds it under /proc/PID/fd and maps it read-only, as `wherry top` does.
//
// A counter costs the fast path one ordinary store, because each counter has one writing thread. An endpoint always has
// a record of its own: in the page, or in private memory if it cannot be shown.
//
// After fork the child makes a page of its own. An inherited endpoint keeps counting in the parent's page, because the
// connection itself is still the parent's. Only the parent frees that record.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include <wherry/address.hpp>

#include "layout/statistics_page.hpp"

namespace wherry::statistics {

/// Adds to a counter that only the calling thread writes: a load and a store, no read-modify-write.
inline void bump(layout::Counter& counter, std::uint64_t by = 1) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

/// Sets a counter that shows a state: a fill, or whether a call sleeps.
inline void set(layout::Counter& counter, std::uint64_t value) noexcept {
  counter.store(value, std::memory_order_relaxed);
}

/// The constant description of an endpoint.
struct Endpoint {
  layout::EndpointKind kind = layout::EndpointKind::stream;
  Address local;
  Address peer;                        ///< a listener has none: leave it empty
  std::int64_t peer_pid = 0;           ///< 0: none
  std::uint64_t send_capacity = 0;     ///< bytes of the ring this side sends into
  std::uint64_t receive_capacity = 0;  ///< bytes of the ring this side receives into
  std::string_view fabric;             ///< its first 15 bytes are shown
  std::string_view peer_host{};        ///< empty: this machine; its first 47 bytes are shown
};

class Page;

/// An endpoint's counters, from open_endpoint until this object dies. Moving it does not move the counters.
class Record {
 public:
  Record() = default;
  Record(Record&& other) noexcept { swap(other); }
  Record& operator=(Record&& other) noexcept {
    Record(std::move(other)).swap(*this);
    return *this;
  }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
  ~Record();

  /// Null only if default-constructed or moved from.
  layout::StatisticsRecord* operator->() const noexcept { return record_; }
  layout::StatisticsRecord& operator*() const noexcept { return *record_; }
  /// False if the counters are invisible to other processes: statistics are off or impossible, or the page is full.
  [[nodiscard]] bool shown() const noexcept { return shown_; }

 private:
  friend Record open_endpoint(const Endpoint& endpoint);
  void swap(Record& other) noexcept {
    std::swap(record_, other.record_);
    std::swap(page_, other.page_);
    std::swap(shown_, other.shown_);
  }

  layout::StatisticsRecord* record_ = nullptr;
  Page* page_ = nullptr;  // null: statistics are off
  bool shown_ = false;
};

/// Opens an endpoint's counters, all zero. From any thread. Throws Error(EINVAL) if WHERRY_STATISTICS or WHERRY_NODE is
/// not valid. Without a memfd (none left, or the kernel refuses) statistics are off, as with WHERRY_STATISTICS=off.
Record open_endpoint(const Endpoint& endpoint);

/// Returns the process's layout::kTransferClasses transfer classes, initially zero, for one writer. They stay until the
/// process ends; after fork they belong to the parent. Null if statistics are off. From any thread. Throws as
/// open_endpoint.
layout::TransferClass* transfer_classes();

}  // namespace wherry::statistics
