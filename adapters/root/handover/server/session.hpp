// SPDX-License-Identifier: Apache-2.0
// One worker's connection, as the server sees it. Guarded by the lock of the BufferAllocator it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <wherry/framed.hpp>

#include "adapters/root/handover/places.hpp"
#include "adapters/root/handover/wire.hpp"
#include "lease.hpp"
#include "server.hpp"

namespace wherry::root {

/// The leases that a worker has been shown, each at an offset of its own.
class Shown {
 public:
  /// Registers the part of a lease that has pages with the worker and returns the offset. Throws Error.
  std::uint64_t show(Windows windows, Lease& lease);
  /// Their numbers.
  [[nodiscard]] std::vector<std::uint64_t> numbers() const;

 private:
  /// More than a worker keeps mapped: so what is taken away here is given up there sooner or later, too.
  static constexpr std::size_t kMost = 16;
  struct Window {
    std::uint64_t lease = 0;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
  };
  std::list<Window> windows_;  ///< the one shown longest ago first
  std::uint64_t next_offset_ = 0;
};

/// A lease that a worker has: to write into, or only because files in it are not done.
struct GrantedLease {
  std::unique_ptr<Lease> range = {};
  Places files = {};           ///< those not done
  std::size_t posted = 0;      ///< files that the worker has posted there
  bool left = false;           ///< the worker writes no more there
  bool untrustworthy = false;  ///< it was let go, and may write there all the same
};

struct Session {
  Session(Stream stream, std::uint64_t number) : frames(std::move(stream)) {
    worker = std::make_shared<Worker>();
    worker->number = number;
    worker->peer = frames.stream().peer();
  }

  /// False if the worker cannot be told. One that does not take its messages is to be let go; one that is gone has
  /// perhaps finished before, which will be heard.
  bool tell(const RootRecord& record, std::string_view text = {}) {
    const Result told = try_send(frames, record, text);
    if (told.would_block() && !doomed) doomed = "it does not read what it is told";
    return told.ok();
  }

  FramedStream frames;
  std::shared_ptr<Worker> worker;
  bool greeted = false;
  bool finished = false;
  bool over_budget = false;  ///< was granted memory over the budget, until its file is posted
  Shown shown;
  std::shared_ptr<GrantedLease> lease;  ///< the lease it writes into
  std::optional<std::size_t> wanted;    ///< bytes of it that the worker waits for
  bool recalled = false;                ///< asked to leave it
  std::size_t leases = 0;               ///< it holds
  bool large = false;                   ///< its files are many: it is given slots
  std::size_t posted = 0;               ///< files not done
  std::uint64_t last_sequence = 0;
  std::vector<std::uint64_t> untold;  ///< files that are done, which it has not been told
  bool listens = false;               ///< and waits to be told
  std::optional<std::string> doomed;  ///< to be let go, and why
};

}  // namespace wherry::root
