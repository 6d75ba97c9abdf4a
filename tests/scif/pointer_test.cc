// SPDX-License-Identifier: Apache-2.0
// Pointers to memory that is not there, or does not allow it: EFAULT, nothing is moved, and the connection goes on.
#include <sys/mman.h>

#include "tests/scif/pages.hpp"

namespace wherry::scif_test {
namespace {

class ScifPointer : public Scif {
 protected:
  ScifPointer() {
    ::munmap(gone_, kPage);
    ::mprotect(pages_.at(kPage), kPage, PROT_NONE);
    ::mprotect(read_only_, kPage, PROT_READ);
  }
  /// The end of memory behind which there is none.
  [[nodiscard]] char* edge() const { return pages_.at(kPage); }
  /// Where nothing can be read.
  [[nodiscard]] std::vector<void*> bad() const {
    return {nullptr, at(8), at(0xdead000000000000), gone_, edge(), edge() - 1};
  }
  static void* at(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): as bad programs make it
  }

  const Pages pages_{2};
  const Pages read_only_{1};
  void* const gone_ = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const Pair pair_;
};

TEST_F(ScifPointer, ToSendIsEfaultAndNothingIsSent) {
  for (void* const message : bad()) {
    for (const int flags : {0, SCIF_SEND_BLOCK}) {
      EXPECT_FAILS(EFAULT, scif_send(pair_.connector, message, 2, flags));
      EXPECT_FAILS(EFAULT, scif_send(pair_.connector, message, 100'000, flags));
    }
  }
  EXPECT_EQ(send_text(pair_.connector, "good"), 4);
  EXPECT_EQ(receive_text(pair_.acceptor, 100, 0), "good");
  EXPECT_EQ(scif_send(pair_.connector, edge() - 1, 1, 0), 1);
  // A longer one, from a page that was seen.
  EXPECT_FAILS(EFAULT, scif_send(pair_.connector, edge() - 1, 2, 0));
  EXPECT_EQ(scif_send(pair_.connector, read_only_, 1, 0), 1);
}

TEST_F(ScifPointer, ToReceiveIsEfaultAndNothingIsLost) {
  EXPECT_EQ(send_text(pair_.connector, "good"), 4);
  std::vector<void*> places = bad();
  places.pop_back();
  places.push_back(read_only_);
  for (void* const buffer : places) {
    for (const int flags : {0, SCIF_RECV_BLOCK}) {
      EXPECT_FAILS(EFAULT, scif_recv(pair_.acceptor, buffer, 2, flags));
      EXPECT_FAILS(EFAULT, scif_recv(pair_.acceptor, buffer, 100'000, flags));
    }
  }
  EXPECT_FAILS(EFAULT, scif_recv(pair_.acceptor, edge() - 1, 2, SCIF_RECV_BLOCK));
  EXPECT_EQ(receive_text(pair_.acceptor, 100, 0), "good");
}

TEST_F(ScifPointer, ACallThatDoesNotWaitNeedsOnlyTheBufferThatItFills) {
  EXPECT_EQ(send_text(pair_.connector, "good"), 4);
  EXPECT_EQ(scif_recv(pair_.acceptor, edge() - 8, 4000, 0), 4);
  EXPECT_EQ(std::string(edge() - 8, 4), "good");
}

TEST_F(ScifPointer, ToMemoryThatWasThereLongAgoIsEfault) {
  void* const memory = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(scif_send(pair_.connector, memory, 1, 0), 1);
  EXPECT_EQ(receive_text(pair_.acceptor, 1), std::string(1, '\0'));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(scif_send(pair_.connector, memory, 1, 0), 1);
  const Pages others(16);
  ::munmap(memory, kPage);
  // Pages of other messages take its place among those that are remembered.
  for (int i = 0; i < 16; ++i) EXPECT_EQ(scif_send(pair_.connector, others.at(i * kStep), 1, 0), 1);
  EXPECT_FAILS(EFAULT, scif_send(pair_.connector, memory, 1, 0));
}

TEST_F(ScifPointer, ToAnyOtherCallIsEfault) {
  const Listening listening;
  const Epd epd;
  scif_portID peer{};
  scif_epd_t made = -1;
  for (void* const place : bad()) {
    if (place == nullptr) continue;  // has a meaning, or is EINVAL
    EXPECT_FAILS(EFAULT, scif_connect(epd, static_cast<scif_portID*>(place)));
    EXPECT_FAILS(EFAULT, scif_accept(listening.epd, static_cast<scif_portID*>(place), &made, 0));
    EXPECT_FAILS(EFAULT, scif_accept(listening.epd, &peer, static_cast<scif_epd_t*>(place), 0));
    EXPECT_FAILS(EFAULT, scif_poll(static_cast<scif_pollepd*>(place), 1, 0));
    EXPECT_FAILS(EFAULT, scif_get_nodeIDs(static_cast<std::uint16_t*>(place), 1, nullptr));
    EXPECT_FAILS(EFAULT, scif_get_nodeIDs(nullptr, 0, static_cast<std::uint16_t*>(place)));
    EXPECT_FAILS(EFAULT, scif_fence_mark(pair_.connector, SCIF_FENCE_INIT_SELF, static_cast<int*>(place)));
  }
  EXPECT_FAILS(EFAULT, scif_poll(nullptr, 1, 0));
  EXPECT_FAILS(EFAULT, scif_fence_mark(pair_.connector, SCIF_FENCE_INIT_SELF, nullptr));
}

}  // namespace
}  // namespace wherry::scif_test
