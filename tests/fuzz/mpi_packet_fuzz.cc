// SPDX-License-Identifier: Apache-2.0
// An endpoint of the MPI provider whose peer sends packets of its own making: whatever they say, the endpoint goes on
// or loses that peer, and writes no memory but what was posted or registered, reads none but what may be read.
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <wherry/mailbox.hpp>

#include "adapters/mpi/messenger/messenger.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/quieten.hpp"

namespace wherry::mpi {
namespace {

using fuzz::Input;
using namespace std::chrono_literals;

/// Turns that a packet has to arrive: the peer may have been lost before it.
constexpr int kTurns = 64;

class Deaf final : public Reporter {
 public:
  void sent(const Completion& /*completion*/) override {}
  void received(const Completion& completion) override {
    if (completion.bytes > 1 << 20) std::abort();
  }
};

/// What the hostile peer announces to lie at an address that can be read.
std::array<std::byte, 4096> announced{};

/// What the endpoint may write: between guards.
struct Posted {
  std::array<std::byte, 64> before{};
  std::array<std::byte, 600> buffer{};
  std::array<std::byte, 64> after{};
};

struct Lent final : Region {
  Lent(std::uint64_t its_key, std::array<std::byte, 600>& bytes_of_it, bool reads, bool writes) {
    key = its_key;
    memory = bytes_of_it.data();
    bytes = bytes_of_it.size();
    readable = reads;
    writable = writes;
  }
};

/// Some that fit: keys 1 to 3, of 600 bytes.
std::array<RemoteRange, kMostRemoteRanges> ranges_of(PacketHead& head, Input& input) {
  std::array<RemoteRange, kMostRemoteRanges> ranges{};
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(head.ranges, kMostRemoteRanges); ++i) {
    const std::uint64_t address = input.one_in(8) ? input.number<std::uint64_t>() : input.number<std::uint16_t>() % 640;
    const std::uint64_t bytes = input.one_in(8) ? input.number<std::uint64_t>() : input.number<std::uint8_t>() & ~7U;
    ranges[i] = {address, bytes, input.number<std::uint8_t>() % 5U};
    sum += bytes;
  }
  if (!input.one_in(8)) head.bytes = sum;
  return ranges;
}

// What lies between the head and the payload; the head is made to fit it, mostly.
std::vector<std::byte> tables(PacketHead& head, Input& input) {
  const bool points = head.operation == Operation::announce || head.operation == Operation::announce_write ||
                      head.operation == Operation::grant;
  const bool names = head.operation >= Operation::write && head.operation <= Operation::atomic;
  if (names && !points && !input.one_in(8)) head.pieces = 0;
  const std::size_t pieces = points ? std::min<std::size_t>(head.pieces, kMostRemotePieces) * sizeof(RemotePiece) : 0;
  const std::size_t count = names ? std::min<std::size_t>(head.ranges, kMostRemoteRanges) : 0;
  std::vector<std::byte> bytes(pieces + count * sizeof(RemoteRange));
  const auto first = input.take(std::min(pieces, std::size_t{64}));
  if (!first.empty()) std::memcpy(bytes.data(), first.data(), first.size());
  if (count == 0) return bytes;
  const auto ranges = ranges_of(head, input);
  std::memcpy(bytes.data() + pieces, ranges.data(), count * sizeof(RemoteRange));
  return bytes;
}

bool pays(Operation operation) {
  return operation == Operation::eager || operation == Operation::stream || operation == Operation::write ||
         operation == Operation::reply;
}

std::vector<std::byte> packet(Input& input) {
  PacketHead head{};
  head.operation = static_cast<Operation>(input.number<std::uint8_t>() % 20);
  head.flags = input.number<std::uint8_t>() % 32;
  head.ranges = input.one_in(8) ? input.number<std::uint8_t>() : input.number<std::uint8_t>() % 5;
  head.datatype = input.number<std::uint8_t>() % 18;
  head.action = input.number<std::uint8_t>() % 20;
  head.pieces = input.one_in(4) ? input.number<std::uint16_t>() : input.number<std::uint8_t>() % 5;
  head.tag = input.number<std::uint8_t>() % 4;
  head.data = input.one_in(4) ? input.number<std::uint64_t>() : input.number<std::uint8_t>() % 4;
  head.bytes = input.one_in(4) ? input.number<std::uint64_t>() : input.number<std::uint16_t>() % 2000;
  head.request = input.one_in(4) ? input.number<std::uint64_t>() : input.number<std::uint8_t>() % 4;
  const std::vector<std::byte> table = tables(head, input);
  const bool is_atomic = head.operation == Operation::atomic;
  const bool has_payload = (pays(head.operation) || is_atomic) && head.bytes < 2000;
  const std::size_t payload = has_payload ? (is_atomic ? operand_bytes(head) : head.bytes) : 0;
  std::vector<std::byte> bytes(sizeof head + table.size() + payload + (input.one_in(16) ? 1 : 0));
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!table.empty()) std::memcpy(bytes.data() + sizeof head, table.data(), table.size());
  const std::size_t begin = sizeof head + table.size();
  const auto rest = input.take(std::min(bytes.size() - begin, std::size_t{64}));
  if (!rest.empty()) std::memcpy(bytes.data() + begin, rest.data(), rest.size());
  if (head.operation == Operation::announce && head.pieces == 1 && head.bytes <= announced.size()) {
    const RemotePiece piece{reinterpret_cast<std::uintptr_t>(announced.data()), head.bytes};
    std::memcpy(bytes.data() + sizeof head, &piece, sizeof piece);
  }
  return bytes;
}

std::vector<std::byte> hello(const Name& own, const Name& to) {
  PacketHead head{};
  head.operation = Operation::hello;
  head.data = to.incarnation;
  const auto name = own.bytes();
  std::vector<std::byte> bytes(sizeof head + sizeof name);
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, name.data(), sizeof name);
  return bytes;
}

class Game {
 public:
  Game() {
    hostile_.listen(Address::parse("wherry+shm://*:*"));
    own_ = Name::of(hostile_.local());
    peer_ = hostile_.connect(endpoint_.name().address());
    endpoint_.link_to(own_).address = 1;
    for (Lent* region : {&readable_, &writable_, &both_}) regions_.add(*region);
    endpoint_.serve(regions_, {.reads = true, .writes = true});
  }
  /// An operation of the endpoint's own on the hostile one's memory.
  void access(Input& input) {
    RemoteRequest request;
    request.to = &endpoint_.link_to(own_);
    request.operation = input.one_in(2) ? Operation::read : Operation::atomic;
    request.datatype = FI_UINT64;
    request.action = FI_ATOMIC_READ;
    request.fetches = true;
    const std::size_t bytes = request.operation == Operation::read ? posted_.buffer.size() : 64;
    request.result = Buffers(posted_.buffer.data(), bytes);
    request.ranges[0] = {0, bytes, 1};
    request.range_count = 1;
    (void)endpoint_.access(request);
  }
  void end_region() {
    endpoint_.revoke(both_);
    regions_.remove(both_);
    ended_ = lent_.buffer;
    is_ended_ = true;
  }
  void send(const std::vector<std::byte>& bytes) {
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    Mailbox::Outgoing message{.pieces = std::span(&piece, 1), .bytes = bytes.size()};
    for (int turn = 0; turn < kTurns && message.taken != message.bytes; ++turn) {
      if (hostile_.try_send(peer_, message).failed()) return;
      (void)endpoint_.wait(0ns);
      (void)hostile_.wait(0ns);
      endpoint_.progress();
    }
  }
  void greet() { send(hello(own_, endpoint_.name())); }
  void post(Input& input) {
    ReceiveRequest request;
    request.tag = input.number<std::uint8_t>() % 4;
    request.ignore = input.one_in(2) ? ~std::uint64_t{0} : 0;
    request.tagged = input.one_in(2);
    request.several = !request.tagged && input.one_in(2);
    request.buffers = Buffers(posted_.buffer.data(), posted_.buffer.size());
    endpoint_.receive(request);
  }
  void reply(Input& input) {
    SendRequest request;
    request.to = &endpoint_.link_to(own_);
    request.buffers = Buffers(posted_.before.data(), posted_.before.size());
    // Long enough to be announced, and streamed in several chunks if the peer wants it.
    if (input.one_in(2)) request.buffers = Buffers(long_.data(), long_.size());
    request.delivery = input.one_in(2);
    (void)endpoint_.send(request);
  }
  void look(Input& input) {
    ReceiveRequest request;
    request.tagged = input.one_in(2);
    request.ignore = ~std::uint64_t{0};
    (void)endpoint_.peek(request, false, input.one_in(2));
  }
  [[nodiscard]] bool guards_stand() const {
    const std::array<std::byte, 64> zero{};
    return posted_.before == zero && posted_.after == zero && lent_.before == zero && lent_.after == zero &&
           taken_.before == zero && taken_.after == zero && kept_.before == zero && kept_.after == zero &&
           kept_.buffer == std::array<std::byte, 600>{} && (!is_ended_ || lent_.buffer == ended_);
  }

 private:
  Posted posted_;
  std::vector<std::byte> long_ = std::vector<std::byte>(600'000);
  Posted lent_;   ///< may be written
  Posted kept_;   ///< may be read only
  Posted taken_;  ///< may be written only
  std::array<std::byte, 600> ended_{};
  bool is_ended_ = false;
  Lent readable_{1, kept_.buffer, true, false};
  Lent writable_{2, taken_.buffer, false, true};
  Lent both_{3, lent_.buffer, true, true};
  Regions regions_;
  Deaf reporter_;
  // Sections that long messages are streamed through.
  Messenger endpoint_{reporter_, {.budget = 1 << 20, .layout = Layout::equal, .lane = 64 << 10}, 4};
  Mailbox hostile_{{.budget = 8192}};
  Name own_;
  Mailbox::Peer peer_ = Mailbox::kNoPeer;
};

}  // namespace
}  // namespace wherry::mpi

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  wherry::fuzz::quieten();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  fuzz::Input input({data, size});
  mpi::Game game;
  if (!input.one_in(16)) game.greet();
  while (!input.empty()) {
    if (input.one_in(2)) game.post(input);
    if (input.one_in(8)) game.reply(input);
    if (input.one_in(8)) game.look(input);
    if (input.one_in(8)) game.access(input);
    if (input.one_in(64)) game.end_region();
    game.send(mpi::packet(input));
    if (!game.guards_stand()) std::abort();
  }
  return 0;
}
