// SPDX-License-Identifier: Apache-2.0
// Whether a large blocking send is split between both sides or goes over the ring, by what each has taken lately on
// this connection. Which is faster is the machine's: one copy by both cores at once wins where a core pays dearly for
// writing lines that the other still holds; a ring larger than the second-level caches avoids that, and where it does
// it wins up to 16 MiB and takes half the CPU time. May include: base.
//
// A sample is what a few messages of one size class took, from the end of the one before them to the end of the last:
// with all that the program does between two sends, because a split transfer keeps it waiting and a ring does not. A
// message before which another went another way is no part of a sample. The way in use is sampled all the time, the
// other in a trial now and then: of at most one byte in a hundred, ever more seldom while it changes nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace wherry::stream {

class SplitChoice {
 public:
  enum class Way : std::uint8_t { split, ring };

  /// The way of the next message.
  [[nodiscard]] Way way(std::size_t bytes) const { return classes_[class_of(bytes)].way; }
  /// A message of `bytes` has gone `way`, between these two moments. `way` need not be what was asked for: a split
  /// takes two.
  void went(Way way, std::size_t bytes, std::int64_t began_ns, std::int64_t ended_ns);

 private:
  static constexpr std::size_t kClasses = 16;

  /// Messages from one power of two to the next.
  struct SizeClass {
    Way home = Way::split;          ///< the faster one, as far as is known
    Way way = Way::split;           ///< another than home in a trial
    std::array<double, 2> cost{};   ///< ns a byte, of each way; 0: not known
    int samples_to_go = 0;          ///< of the trial
    int messages_to_go = 0;         ///< of the trial, for as many samples
    std::uint64_t bytes_to_go = 0;  ///< before the next trial
    std::uint64_t interval = 1;     ///< between trials, as a multiple of the shortest
    std::int64_t ns = 0;            ///< of the sample that is under way
    std::uint64_t bytes = 0;
  };

  static std::size_t class_of(std::size_t bytes);
  static void sampled(SizeClass& size);
  static void begin_trial(SizeClass& size, std::size_t bytes);
  static void end_trial(SizeClass& size, std::size_t bytes);

  std::array<SizeClass, kClasses> classes_{};
  Way last_way_ = Way::split;
  std::int64_t last_end_ns_ = 0;  ///< 0: none
};

}  // namespace wherry::stream
