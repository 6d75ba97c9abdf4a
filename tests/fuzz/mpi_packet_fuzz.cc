// SPDX-License-Identifier: Apache-2.0
// An endpoint of the MPI provider whose peer sends packets of its own making: whatever they say, the endpoint goes on
// or loses that peer, and writes no memory but what was posted.
#include <rdma/fabric.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <wherry/mailbox.hpp>

#include "adapters/mpi/provider/messenger.hpp"
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

std::vector<std::byte> packet(Input& input) {
  PacketHead head{};
  head.operation = static_cast<Operation>(input.number<std::uint8_t>() % 12);
  head.flags = input.number<std::uint8_t>() % 8;
  head.pieces = input.one_in(4) ? input.number<std::uint16_t>() : input.number<std::uint8_t>() % 5;
  head.tag = input.number<std::uint8_t>() % 4;
  head.data = input.one_in(4) ? input.number<std::uint64_t>() : input.number<std::uint8_t>() % 4;
  head.bytes = input.one_in(4) ? input.number<std::uint64_t>() : input.number<std::uint16_t>() % 2000;
  head.request = input.one_in(4) ? input.number<std::uint64_t>() : input.number<std::uint8_t>() % 4;
  const bool announces = head.operation == Operation::announce;
  const std::size_t table = announces ? std::min<std::size_t>(head.pieces, kMostRemotePieces) * sizeof(RemotePiece) : 0;
  const bool pays = head.operation == Operation::eager || head.operation == Operation::stream;
  const std::size_t payload = pays && head.bytes < 2000 ? static_cast<std::size_t>(head.bytes) : 0;
  std::vector<std::byte> bytes(sizeof head + table + payload + (input.one_in(16) ? 1 : 0));
  std::memcpy(bytes.data(), &head, sizeof head);
  const auto rest = input.take(std::min(bytes.size() - sizeof head, std::size_t{64}));
  if (!rest.empty()) std::memcpy(bytes.data() + sizeof head, rest.data(), rest.size());
  if (announces && head.pieces == 1 && head.bytes <= announced.size()) {
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
    return posted_.before == zero && posted_.after == zero;
  }

 private:
  Posted posted_;
  std::vector<std::byte> long_ = std::vector<std::byte>(600'000);
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
    game.send(mpi::packet(input));
    if (!game.guards_stand()) std::abort();
  }
  return 0;
}
