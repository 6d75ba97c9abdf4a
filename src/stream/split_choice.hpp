// SPDX-License-Identifier: Apache-2.0
// Whether a large blocking send is split between both sides or goes over the ring, by what each has taken lately on
// this connection. Which is faster is the machine's: one copy by both cores at once wins where a core pays dearly for
// writing lines that the other still holds; a ring larger than the second-level caches avoids that, and where it does
// it wins up to 16 MiB and takes half the CPU time. May include: base.
//
// A sample is what a few messages of one size class took, from the end of the one before them to the end of the last:
// with all that the program does between two sends, because a split transfer keeps it waiting and a ring does not. A
// message before which another went another way is no part of a sample. The way in use is sampled all the time, the
// other in a trial now and then: of at most one byte in a hundred, ever more seldom while it changes nothing. A trial
// is about one class, but all messages go that way meanwhile, and none counts before the ring is as full as it becomes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace wherry::stream {

class SplitChoice {
 public:
  enum class Way : std::uint8_t { split, ring };

  /// @param ring  its capacity in bytes
  explicit SplitChoice(std::size_t ring) : ring_(ring) {}

  /// The way of the next message.
  [[nodiscard]] Way way(std::size_t bytes) const {
    return trial_ == nullptr ? classes_[class_of(bytes)].home : trial_way_;
  }
  /// A message of `bytes` has gone `way`, between these two moments. `way` need not be what was asked for: a split
  /// takes two.
  void went(Way way, std::size_t bytes, std::int64_t began_ns, std::int64_t ended_ns);

 private:
  static constexpr std::size_t kClasses = 12;

  /// Messages from one power of two to the next.
  struct SizeClass {
    std::array<float, 2> cost{};    ///< ns a byte, of each way; 0: not known
    std::uint64_t bytes_to_go = 0;  ///< before the next trial
    std::int64_t ns = 0;            ///< of the sample that is under way
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
  void tried(SizeClass& size, Way way, std::size_t bytes, std::int64_t ns);
  void end_trial();

  std::array<SizeClass, kClasses> classes_{};
  const std::size_t ring_;
  std::int64_t last_end_ns_ = 0;      ///< 0: none
  SizeClass* trial_ = nullptr;        ///< what is tried
  std::uint64_t trial_messages_ = 0;  ///< of that class, that are still to go
  std::uint64_t trial_size_ = 0;      ///< bytes of these
  std::uint64_t trial_bytes_ = 0;     ///< of all classes, that it lasts at most
  std::uint64_t trial_filling_ = 0;   ///< bytes that do not count yet
  int trial_samples_ = 0;             ///< that are still wanted
  Way trial_way_ = Way::ring;
  Way last_way_ = Way::split;
};

}  // namespace wherry::stream
