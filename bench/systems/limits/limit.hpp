// SPDX-License-Identifier: Apache-2.0
//
// Limits: the simplest program that does only one thing, to have a ceiling beside each table. They trust each other and
// spin; nothing else would do that.
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "arch/cache_line.hpp"
#include "arch/pause.hpp"
#include "bench/harness/message_buffer.hpp"
#include "bench/harness/system.hpp"

namespace wherry::bench {

/// Spins until `holds()`, and lets others run now and then: with one core, or with others busy, the one waited for
/// could not come otherwise.
template <class Condition>
void spin_until(Condition&& holds) {
  constexpr int kLooks = 2000;
  for (int looks = 0; !holds(); ++looks) {
    arch::pause();
    if (looks % kLooks == kLooks - 1) ::sched_yield();
  }
}

/// A counter on a cache line of its own. One process writes it.
struct alignas(arch::kCacheLine) Counter {
  std::atomic<std::uint64_t> value = 0;
};

/// Memory that processes share which are forked while it exists. Every page is there.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes)
      : bytes_(bytes),
        start_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {
    if (start_ == MAP_FAILED) throw std::bad_alloc();
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { ::munmap(start_, bytes_); }

  [[nodiscard]] std::span<std::byte> span() const { return {static_cast<std::byte*>(start_), bytes_}; }

 private:
  std::size_t bytes_;
  void* start_;
};

/// A limit with a control structure and memory that its processes inherit and share.
template <class Control>
class Limit : public LinkSystem {
 public:
  Limit(std::string name, std::string settings) : name_("limit:" + std::move(name)), settings_(std::move(settings)) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string settings() const override { return settings_; }
  [[nodiscard]] bool prefaulted() const override { return true; }

  Outcome run(const Sample& sample) override {
    const std::size_t head = (sizeof(Control) + kPage - 1) / kPage * kPage;
    const SharedMemory memory(head + memory_bytes(sample));
    control_ = new (memory.span().data()) Control;
    memory_ = memory.span().subspan(head);
    return LinkSystem::run(sample);
  }

 protected:
  [[nodiscard]] virtual std::size_t memory_bytes(const Sample& /*sample*/) const { return 0; }
  [[nodiscard]] Control& control() const { return *control_; }
  [[nodiscard]] std::span<std::byte> memory() const { return memory_; }

 private:
  static constexpr std::size_t kPage = 4096;

  std::string name_;
  std::string settings_;
  Control* control_ = nullptr;
  std::span<std::byte> memory_;
};

}  // namespace wherry::bench
