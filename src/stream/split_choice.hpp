// SPDX-License-Identifier: Apache-2.0
// Chooses whether a large blocking send is split between both sides or goes over the ring, by what each way has cost
// recently on this connection. Which is faster depends on the machine. One copy by both cores at once wins where a core
// pays much for writing lines that the other still holds. A ring larger than the second-level caches avoids that; there
// the ring wins up to 16 MiB and takes half the CPU time.
//
// May include: base.
//
// A sample is the time of a few messages of one size class, from the end of the message before them to the end of the
// last. It includes what the program does between two sends, because a split keeps the program waiting and a ring does
// not. A message after one that went the other way is not part of a sample. The way in use is sampled all the time. The
// other way is sampled in trials, with at most one byte in a hundred, and up to 16 times less often while trials change
// nothing. A trial is about one size class, but all messages go the trial's way meanwhile. No message counts before the
// ring is as full as it becomes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace wherry::stream {

class SplitChoice {
 public:
  enum class Way : std::uint8_t { split, ring };

  /// @param ring  the capacity of the ring in bytes
  explicit SplitChoice(std::size_t ring) : ring_(ring) {}

  /// Returns the way of the next message.
  [[nodiscard]] Way way(std::size_t bytes) const {
    return trial_ == nullptr ? classes_[class_of(bytes)].home : trial_way_;
  }
  /// Records that a message of `bytes` went `way`, between these two moments. `way` may differ from way(): a split
  /// needs both sides.
  void record_transfer(Way way, std::size_t bytes, std::int64_t began_ns, std::int64_t ended_ns);

 private:
  static constexpr std::size_t kClasses = 12;

  /// Messages from one power of two to the next.
  struct SizeClass {
    std::array<float, 2> cost{};    ///< ns per byte of each way; 0: not known
    std::uint64_t bytes_to_go = 0;  ///< before the next trial
    std::int64_t ns = 0;            ///< time of the current sample
    std::uint64_t bytes = 0;
    std::uint8_t interval = 1;  ///< between trials, as a multiple of the shortest
    Way home = Way::split;      ///< the faster one, as far as is known
  };

  static std::size_t class_of(std::size_t bytes);
  [[nodiscard]] bool huge(std::size_t bytes) const;
  [[nodiscard]] std::uint64_t messages_of_sample(std::size_t bytes) const;
  [[nodiscard]] std::uint64_t messages_of_trial(std::size_t bytes) const;
  bool add_to_sample(SizeClass& size, Way way, std::size_t bytes, std::int64_t ns) const;
  void begin_trial(Way way, std::size_t bytes);
  void record_in_trial(SizeClass& size, Way way, std::size_t bytes, std::int64_t ns);
  void end_trial();

  std::array<SizeClass, kClasses> classes_{};
  const std::size_t ring_;
  std::int64_t last_end_ns_ = 0;      ///< 0: none
  SizeClass* trial_ = nullptr;        ///< the class under trial; null: none
  std::uint64_t trial_messages_ = 0;  ///< messages of that class left
  std::uint64_t trial_size_ = 0;      ///< bytes of all its messages
  std::uint64_t trial_bytes_ = 0;     ///< most bytes left, of all classes
  std::uint64_t trial_filling_ = 0;   ///< bytes left that do not count, while the ring fills
  int trial_samples_ = 0;             ///< samples still wanted
  Way trial_way_ = Way::ring;
  Way last_way_ = Way::split;
};

}  // namespace wherry::stream
