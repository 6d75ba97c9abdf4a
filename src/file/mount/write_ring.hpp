// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/unique_fd.hpp"
#include "file/mount/offered_memory.hpp"
#include "layout/write_ring.hpp"

namespace wherry::file::mount {

/// Writes that a program has put into memory which it shares with this mount (layout/write_ring.hpp). Everything in
/// that memory is checked: the program can change it at any time.
///
/// `seal` and `is_sealed` from any thread, the rest from one at a time. Never blocks.
class WriteRing {
 public:
  struct Taken {
    std::unique_ptr<WriteRing> ring{};
    int error = 0;  ///< EPERM: the program's descriptor cannot be taken. EINVAL: it is no such memory
  };
  /// Takes the memory that a program offers.
  /// @param thread  of the program; must be waiting for the answer
  static Taken take(pid_t thread, const layout::WriteRingOffer& offer);
  /// Seals memory that an earlier daemon has taken, and continues with what is in it. Null: it cannot be used.
  static std::unique_ptr<WriteRing> resume(UniqueFd memory);
  WriteRing(const WriteRing&) = delete;
  WriteRing& operator=(const WriteRing&) = delete;
  ~WriteRing();

  [[nodiscard]] int descriptor() const { return memory_.descriptor(); }
  /// Tells the program where the file ends, before it adds anything.
  void set_end(std::uint64_t end) { header().end.store(end, std::memory_order_relaxed); }
  /// @param ended  called when this object ends
  void set_ended(std::function<void()> ended) { ended_ = std::move(ended); }

  /// The oldest write, or the rest of it. Valid until `remove`.
  struct Write {
    std::uint64_t offset = 0;  ///< of a file opened with O_APPEND: where the program expects it
    std::array<std::span<const std::byte>, 2> parts{};
    [[nodiscard]] std::size_t bytes() const { return parts[0].size() + parts[1].size(); }
  };
  /// Empty: there was none when the call began. So a program that adds records all the time does not hold it up.
  [[nodiscard]] std::optional<Write> first();
  /// Removes the beginning of the oldest write.
  void remove(std::size_t bytes);
  /// Lets the program reuse the memory of what was removed, and add records of at most `room` bytes altogether. What
  /// it was allowed before stays allowed.
  void publish(std::uint64_t room);
  /// Bytes of records that the program may still add, or has added since the last look. 0 once it is sealed.
  [[nodiscard]] std::uint64_t expected() const;

  /// Position of the newest write.
  [[nodiscard]] std::uint64_t last() const;
  /// Whether everything up to this position is removed.
  [[nodiscard]] bool has_taken(std::uint64_t position) const { return taken_ > position || is_over_; }

  /// Ends it: no further write is added.
  void seal();
  [[nodiscard]] bool is_sealed() const;
  /// Whether the memory contained something invalid, once.
  [[nodiscard]] bool take_broken() { return std::exchange(is_broken_, false); }
  /// From now on the program asks the mount to take its next write. False: there is one already.
  bool sleep();

 private:
  explicit WriteRing(OfferedMemory memory) : memory_(std::move(memory)) {}
  static std::unique_ptr<WriteRing> map(UniqueFd memory);
  [[nodiscard]] layout::WriteRingHeader& header() const {
    return *static_cast<layout::WriteRingHeader*>(memory_.begin());
  }
  [[nodiscard]] const std::byte* bytes_at(std::uint64_t position) const;
  void break_off();

  OfferedMemory memory_;
  std::function<void()> ended_{};
  std::uint64_t taken_ = 0;           ///< position of the oldest record
  std::uint64_t until_ = UINT64_MAX;  ///< position of the newest write that is taken
  std::uint64_t limit_ = 0;           ///< position up to which the program may add records
  std::size_t removed_ = 0;           ///< bytes of its data that were removed
  std::uint32_t length_ = 0;          ///< of its data, as last checked
  bool is_broken_ = false;
  bool is_over_ = false;  ///< after something invalid
};

}  // namespace wherry::file::mount
