// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/root/program/sample_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/clock.hpp"

namespace wherry::bench::root {
namespace {

void close_once(int& descriptor) {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

}  // namespace

SampleMemory::SampleMemory() {
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap");
  page_ = new (memory) Page{};
  for (Pipe& barrier : barriers_) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::system_category(), "pipe2");
    barrier = {ends[0], ends[1]};
  }
}

SampleMemory::~SampleMemory() {
  enter();
  for (Pipe& barrier : barriers_) close_once(barrier.read);
  ::munmap(page_, sizeof(Page));
}

void SampleMemory::enter() {
  for (Pipe& barrier : barriers_) close_once(barrier.write);
}

void SampleMemory::pass(Barrier barrier) const {
  char nothing = 0;
  while (::read(barriers_.at(static_cast<std::size_t>(barrier)).read, &nothing, 1) < 0 && errno == EINTR) continue;
}

void SampleMemory::open(Barrier barrier) { close_once(barriers_.at(static_cast<std::size_t>(barrier)).write); }

void SampleMemory::arrive(Step step) { page_->arrived.at(static_cast<std::size_t>(step)).fetch_add(1); }

std::uint32_t SampleMemory::arrived(Step step) const {
  return page_->arrived.at(static_cast<std::size_t>(step)).load();
}

void SampleMemory::stamp() {
  const std::uint64_t now = monotonic_ns();
  std::uint64_t last = page_->last_stamp.load();
  while (last < now && !page_->last_stamp.compare_exchange_weak(last, now)) continue;
}

std::uint64_t SampleMemory::last_stamp() const { return page_->last_stamp.load(); }

void SampleMemory::add_sent(std::uint64_t bytes) { page_->sent_bytes.fetch_add(bytes); }

std::uint64_t SampleMemory::sent_bytes() const { return page_->sent_bytes.load(); }

void SampleMemory::post_address(const std::string& address) {
  if (address.size() >= page_->address.size()) throw std::length_error("an address that long: " + address);
  std::memcpy(page_->address.data(), address.c_str(), address.size() + 1);
  arrive(Step::listening);
}

std::string SampleMemory::address() const { return page_->address.data(); }

}  // namespace wherry::bench::root
