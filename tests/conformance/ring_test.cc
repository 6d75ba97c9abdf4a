// SPDX-License-Identifier: Apache-2.0
// A ring with its two ends joined only by a fabric, by nothing but the contract: the bytes and the two positions travel
// by stores through the map where there is one, and by put and signal where there is none.
#include <random>
#include <thread>

#include "ring/ring.hpp"
#include "tests/common/pattern.hpp"
#include "tests/conformance/fabric_pair.hpp"

namespace wherry::conformance {
namespace {

constexpr std::size_t kCapacity = 8192;
constexpr std::uint64_t kTail = 0;   ///< in the consumer's segment
constexpr std::uint64_t kHead = 64;  ///< in the producer's segment
constexpr std::uint64_t kRing = kPage;
const Offer kOffer{.segment_bytes = kPage + kCapacity};

layout::Word* remote_word(const Connection& connection, std::uint64_t offset) {
  return connection.map() == nullptr ? nullptr : reinterpret_cast<layout::Word*>(connection.map() + offset);
}

class FabricRing : public FabricTest {
 protected:
  void produce(Connection& connection, std::uint64_t total) {
    const Bytes staging(connection, kCapacity);
    std::byte* ring = connection.map() == nullptr ? staging.data() : connection.map() + kRing;
    ring::Producer producer({ring, kCapacity}, &word(connection, kHead), remote_word(connection, kTail));
    std::mt19937_64 random(1);
    for (std::uint64_t sent = 0; sent < total;) {
      const std::uint64_t from = producer.tail();
      const std::size_t n =
          producer.copy_in(pattern_.bytes(std::min<std::uint64_t>(total - sent, 1 + random() % 3000), sent));
      if (n == 0) {
        // Fewer than a quarter of the ring may be kept back by the consumer; any more space shows.
        ASSERT_EQ(await(connection, kHead, from - kCapacity + 1, Bell::space), Wake::rung);
        continue;
      }
      const std::uint64_t tail = producer.commit(n);
      if (connection.map() == nullptr) {
        const Regions regions = producer.view().at(from, n);
        for (const auto piece : {regions.first, regions.second}) {
          const auto at = static_cast<std::uint64_t>(piece.data() - staging.data());
          ASSERT_TRUE(put_all(connection, kRing + at, piece));
        }
        ASSERT_TRUE(connection.signal(kTail, tail, Bell::data));
      } else {
        connection.announce(Bell::data);
      }
      sent += n;
    }
    // Puts still on their way read the staging ring.
    ASSERT_TRUE(connection.flush({}).ok());
  }

  void consume(Connection& connection, std::uint64_t total) {
    ring::Consumer consumer({connection.segment().data() + kRing, kCapacity}, &word(connection, kTail),
                            remote_word(connection, kHead));
    std::mt19937_64 random(2);
    std::vector<std::byte> buffer(kCapacity);
    for (std::uint64_t received = 0; received < total;) {
      ASSERT_EQ(await(connection, kTail, received + 1, Bell::data), Wake::rung);
      const std::size_t n = consumer.copy_out(std::span(buffer).first(1 + random() % kCapacity));
      ASSERT_GT(n, 0U);
      ASSERT_FALSE(consumer.broken());
      ASSERT_TRUE(pattern_.matches(std::span(buffer).first(n), received)) << "at " << received;
      received += n;
      if (!consumer.credit_due()) continue;
      const std::uint64_t head = consumer.return_credit();
      if (connection.map() == nullptr) {
        ASSERT_TRUE(connection.signal(kHead, head, Bell::space));
      } else {
        connection.announce(Bell::space);
      }
    }
  }

  const Pattern pattern_{5};
};

TEST_P(FabricRing, EveryByteArrivesInOrder) {
  const Ends ends = connect_pair(kOffer, kOffer);
  constexpr std::uint64_t kTotal = 2 << 20;
  std::thread consumer([&] { consume(*ends.acceptor, kTotal); });
  produce(*ends.connector, kTotal);
  consumer.join();
}

WHERRY_ON_EVERY_FABRIC(FabricRing);

}  // namespace
}  // namespace wherry::conformance
