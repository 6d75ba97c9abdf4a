// SPDX-License-Identifier: Apache-2.0
#include "wherry_prefault.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <vector>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMegabyte = std::size_t{1} << 20;
constexpr std::size_t kMessage = std::size_t{64} << 10;

/// Memory that was never touched, as a heap that grows gets it.
class Fresh {
 public:
  explicit Fresh(std::size_t bytes) : bytes_(bytes) {
    void* const place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap");
    begin_ = static_cast<std::byte*>(place);
    // A huge page would map more than what is asked for.
    (void)::madvise(begin_, bytes, MADV_NOHUGEPAGE);
  }
  ~Fresh() { ::munmap(begin_, bytes_); }
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;

  [[nodiscard]] std::byte* at(std::size_t offset) const { return begin_ + offset; }
  void shrink_to(std::size_t bytes) {
    ::munmap(begin_ + bytes, bytes_ - bytes);
    bytes_ = bytes;
  }
  void write(std::size_t offset, std::size_t bytes) { std::fill_n(begin_ + offset, bytes, std::byte{1}); }

  [[nodiscard]] std::size_t mapped_bytes() const {
    std::vector<unsigned char> there(bytes_ / kPage);
    if (::mincore(begin_, bytes_, there.data()) != 0) return 0;
    return kPage * static_cast<std::size_t>(
                       std::count_if(there.begin(), there.end(), [](unsigned char page) { return (page & 1) != 0; }));
  }

 private:
  std::byte* begin_;
  std::size_t bytes_;
};

class HeapPrefault : public testing::Test {
 protected:
  void SetUp() override {
    const Fresh page(kPage);
    if (::madvise(page.at(0), kPage, MADV_POPULATE_READ) != 0) GTEST_SKIP() << "needs Linux 5.14";
  }

  zmq::wherry_heap_prefault_t prefault_;
};

TEST_F(HeapPrefault, MapsAMissingMessageWithAMegabyteOfWhatLiesBehind) {
  const Fresh heap(4 * kMegabyte);
  prefault_.before(heap.at(16), kMessage);
  EXPECT_EQ(heap.mapped_bytes(), kMegabyte);
}

TEST_F(HeapPrefault, NoticesWithinSixteenMessagesThatTheyAreMissing) {
  Fresh heap(4 * kMegabyte);
  heap.write(0, kMessage);
  for (int i = 0; i < 200; ++i) prefault_.before(heap.at(16), kMessage - 16);
  EXPECT_EQ(heap.mapped_bytes(), kMessage);
  for (std::size_t i = 1; i <= 16; ++i) prefault_.before(heap.at(i * kMessage), kMessage);
  EXPECT_GE(heap.mapped_bytes(), kMegabyte);
}

TEST_F(HeapPrefault, MapsWhatThereIsWhereTheHeapEnds) {
  Fresh heap(kMegabyte);
  heap.shrink_to(kMegabyte / 2);
  prefault_.before(heap.at(kMegabyte / 4), kMessage);
  EXPECT_EQ(heap.mapped_bytes(), kMegabyte / 4);
}

}  // namespace
