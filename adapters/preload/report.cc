// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "descriptors.hpp"
#include "directories.hpp"
#include "kept_text.hpp"
#include "next.hpp"

namespace wherry::preload {

WHERRY_START_DATA bool detail::reports = false;

namespace {

struct Sum {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> checked{0};  // of the calls, whether they are hits
  std::atomic<std::uint64_t> hits{0};
};

constexpr std::size_t kRoutes = 4;
constinit std::array<std::array<Sum, kRoutes>, 2> sums{};  // of reads, of writes

enum class Counted : std::uint8_t { not_known, yes, no };
constinit std::array<std::atomic<Counted>, kDescriptors> counted{};

bool is_counted(int fd) noexcept {
  if (static_cast<unsigned>(fd) >= kDescriptors) return false;
  auto& known = counted[static_cast<unsigned>(fd)];
  Counted now = known.load(std::memory_order_relaxed);
  if (now == Counted::not_known) {
    now = path_below(fd) ? Counted::yes : Counted::no;
    known.store(now, std::memory_order_relaxed);
  }
  return now == Counted::yes;
}

/// A line of text. What does not fit is left out.
class Line {
 public:
  void add(std::string_view text) {
    const std::size_t bytes = std::min(text.size(), text_.size() - length_);
    std::memcpy(text_.data() + length_, text.data(), bytes);
    length_ += bytes;
  }
  void add(std::uint64_t number) {
    std::array<char, 24> digits{};
    add({digits.data(),
         static_cast<std::size_t>(std::to_chars(digits.begin(), digits.end(), number).ptr - digits.data())});
  }
  void add(std::string_view name, const Sum& sum) {
    const std::uint64_t calls = sum.calls.load(std::memory_order_relaxed);
    if (calls == 0) return;
    add(name);
    add(calls);
    add(" calls ");
    add(sum.bytes.load(std::memory_order_relaxed));
    add(" bytes");
    const std::uint64_t checked = sum.checked.load(std::memory_order_relaxed);
    if (checked == 0) return;
    add(", ");
    add(sum.hits.load(std::memory_order_relaxed));
    add(" of ");
    add(checked);
    add(" found in memory");
  }
  [[nodiscard]] std::string_view text() const { return {text_.data(), length_}; }

 private:
  std::array<char, 1024> text_{};
  std::size_t length_ = 0;
};

__attribute__((destructor)) void print_report() {
  if (!detail::reports) return;
  static constexpr std::array<std::array<std::string_view, kRoutes>, 2> kNames{
      {{"; reads in place: ", "; reads from the host: ", "; reads by the kernel: ", ""},
       {"", "; writes to the host: ", "; writes by the kernel: ", "; writes by a ring: "}}};
  Line line;
  line.add("wherry files: process ");
  line.add(static_cast<std::uint64_t>(::getpid()));
  for (std::size_t writes = 0; writes < sums.size(); writes++) {
    for (std::size_t way = 0; way < kRoutes; way++) line.add(kNames[writes][way], sums[writes][way]);
  }
  line.add("\n");
  (void)!WHERRY_NEXT(write, STDERR_FILENO, line.text().data(), line.text().size());
}

}  // namespace

void read_report_environment() noexcept {
  const char* const word = std::getenv("WHERRY_FILES_REPORT");
  const std::string_view text = word == nullptr ? "" : word;
  detail::reports = text == "1" || text == "on" || text == "true" || text == "yes";
}

void count_transfer(int fd, bool writes, Route route, ssize_t result, Hit hit) noexcept {
  const int error = errno;
  if (result >= 0 && is_counted(fd)) {
    Sum& sum = sums[writes ? 1 : 0][static_cast<std::size_t>(route)];
    sum.calls.fetch_add(1, std::memory_order_relaxed);
    sum.bytes.fetch_add(static_cast<std::uint64_t>(result), std::memory_order_relaxed);
    if (hit != Hit::not_checked) sum.checked.fetch_add(1, std::memory_order_relaxed);
    if (hit == Hit::yes) sum.hits.fetch_add(1, std::memory_order_relaxed);
  }
  errno = error;
}

void begin_report_anew() noexcept {
  for (auto& of_one_kind : sums) {
    for (Sum& sum : of_one_kind) {
      for (auto* const count : {&sum.calls, &sum.bytes, &sum.checked, &sum.hits}) {
        count->store(0, std::memory_order_relaxed);
      }
    }
  }
}

void forget_reported(int fd) noexcept {
  counted[static_cast<unsigned>(fd)].store(Counted::not_known, std::memory_order_relaxed);
}

}  // namespace wherry::preload
