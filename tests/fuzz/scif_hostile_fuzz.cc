// SPDX-License-Identifier: Apache-2.0
// An endpoint of SCIF's with a hostile peer, which writes anything into the words of the queues and of the windows, and
// sends or swallows packets, at any moment between this side's calls. Calls end, say nothing that cannot be, and leave
// nothing open.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>

#include <scif.h>

#include "adapters/scif/layout/page.hpp"
#include "adapters/scif/link.hpp"
#include "base/open_descriptors.hpp"
#include "fabric/shm/connection.hpp"
#include "memory/arena_view.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/quieten.hpp"

namespace wherry::fuzz {
namespace {

using layout::ScifPage;
using layout::WindowPage;
using layout::Word;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 16;
constexpr std::size_t kFat = 4352;
constexpr std::uint16_t kPort = 2000;
constexpr std::size_t kWindowsPlace = layout::kScifPageBytes + layout::kScifQueueBytes;

void require(bool holds) {
  if (!holds) std::abort();
}

UniqueFd make_arena(std::uint64_t bytes) {
  UniqueFd memfd(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  require(::ftruncate(memfd.get(), static_cast<off_t>(bytes)) == 0);
  require(::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
  return memfd;
}

/// The other end of the victim's socket, and what it holds of the victim's.
class Peer {
 public:
  explicit Peer(Input& input) : input_(input), arena_(make_arena(2 * memory::kArenaChunk)) {}

  void adopt(int socket) { socket_.reset(socket); }
  [[nodiscard]] bool has_left() const { return !socket_.valid(); }

  /// A hello as it should be, but for its arena now and then.
  void say_hello() {
    const fabric::shm::OwnSide side(scif::offer());
    side.memory.page().recognition = {};  // it is this process, whose memory must not be reached by address
    layout::ShmHello hello = side.hello(0, 1500);
    hello.arena_bytes = input_.one_in(8) ? input_.number<std::uint64_t>() : 2 * memory::kArenaChunk;
    std::array<int, 2> descriptors{side.memory.descriptor(), arena_.get()};
    if (input_.one_in(16)) descriptors[1] = side.memory.descriptor();
    (void)fabric::shm::send_packet(socket_.get(), hello, std::span(descriptors).first(hello.arena_bytes == 0 ? 1 : 2));
  }
  void send(std::size_t bytes) {
    static constexpr std::array<char, kFat> kNothing{};
    if (socket_.valid()) (void)::send(socket_.get(), kNothing.data(), bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  /// Takes the victim's half of the handshake.
  void learn() {
    fabric::shm::Packet packet;
    int error = 0;
    if (fabric::shm::receive_packet(socket_.get(), packet) != 0) return;
    victims_ = fabric::shm::map_peers_memory(packet.descriptors[0].get(), packet.hello.segment_bytes, error);
  }

  /// Anything it can do.
  void act() {
    while (input_.one_in(2)) {
      switch (input_.number<std::uint8_t>() % 8) {
        case 0:
          send(input_.one_in(2) ? kFat : 1);
          break;
        case 1: {
          std::array<char, 8> bytes{};
          if (socket_.valid()) (void)::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
          break;
        }
        case 2:
          if (input_.one_in(32)) socket_.reset();
          break;
        default:
          scribble();
      }
    }
  }

 private:
  void scribble() {
    if (victims_.start() == nullptr) return;
    std::byte* const segment = victims_.start() + layout::kBellPageBytes;
    auto& page = *reinterpret_cast<ScifPage*>(segment);
    auto& windows = *reinterpret_cast<WindowPage*>(segment + kWindowsPlace);
    const std::size_t index = input_.number<std::uint8_t>() % 4;
    layout::WindowEntry& entry = windows.entries[index];
    Word* const words[] = {&page.arriving.tail,
                           &page.arriving.packets,
                           &page.arriving.full,
                           &page.arriving.answered,
                           &page.leaving.head,
                           &page.wanting.request,
                           &page.wanting.quiet,
                           &page.leaving.drained,
                           &page.wanting.polled,
                           &page.socket.inode,
                           &page.socket.descriptor,
                           &windows.changes,
                           &windows.sequences[index],
                           &windows.started,
                           &windows.completed,
                           &windows.closed,
                           &windows.marks[index],
                           &entry.place,
                           &entry.kind};
    switch (input_.number<std::uint8_t>() % 4) {
      case 0:
        *words[input_.number<std::uint8_t>() % std::size(words)] = input_.number<std::uint64_t>();
        break;
      case 1:  // a step as an honest peer makes it
        *words[input_.number<std::uint8_t>() % std::size(words)] += input_.number<std::uint8_t>();
        break;
      case 2:  // a window that makes sense
        entry.offset = std::uint64_t{input_.number<std::uint8_t>()} % 8 * kPage;
        entry.bytes = (1 + std::uint64_t{input_.number<std::uint8_t>()} % 8) * kPage;
        entry.protection = 3;
        entry.place = std::uint64_t{input_.number<std::uint8_t>()} * kPage;
        entry.kind = identity_ << 2 | (input_.one_in(8) ? 2U : 1U);
        windows.sequences[index] |= 1;
        windows.changes = layout::window_changes((windows.changes >> 16) + 1, 4);
        break;
      default:
        segment[input_.number<std::uint16_t>() % (2 * kPage)] = std::byte{input_.number<std::uint8_t>()};
    }
  }

  Input& input_;
  const UniqueFd arena_;
  const std::uint64_t identity_ = memory::identity_of(arena_.get()).inode;
  UniqueFd socket_;
  fabric::shm::Mapping victims_;
};

void poll(scif_epd_t epd, Input& input) {
  const auto asked = static_cast<short>(input.number<std::uint8_t>());
  scif_pollepd polled{epd, asked, 0};
  require(scif_poll(&polled, 1, 0) >= 0 || errno == EINTR);  // by the fuzzer's own timer
  require((polled.revents & ~(asked | SCIF_POLLERR | SCIF_POLLHUP | SCIF_POLLNVAL)) == 0);
  pollfd bare{epd, asked, 0};
  require(::poll(&bare, 1, 0) >= 0 || errno == EINTR);
}

void fence(scif_epd_t epd, Input& input, bool peer_has_left) {
  // A peer that lives may keep this side waiting for its RMA, for ten seconds.
  const int initiator = peer_has_left && input.one_in(2) ? SCIF_FENCE_INIT_PEER : SCIF_FENCE_INIT_SELF;
  int mark = 0;
  if (scif_fence_mark(epd, initiator, &mark) == 0) (void)scif_fence_wait(epd, mark);
  const auto offset = [&] { return off_t{input.number<std::uint16_t>()} * 4; };
  (void)scif_fence_signal(epd, offset(), 1, offset(), 2, initiator | SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE);
}

void one_call(scif_epd_t epd, Input& input, std::byte* memory, bool peer_has_left) {
  const auto offset = [&] { return off_t{input.number<std::uint16_t>()} % static_cast<off_t>(kPages * kPage); };
  const auto pages = [&] { return (1 + std::size_t{input.number<std::uint8_t>()} % kPages) * kPage; };
  const int flags = input.number<std::uint8_t>() % 16;
  // Blocking calls end for certain only once the peer has left.
  const int block = peer_has_left && input.one_in(2) ? 1 : 0;
  const int bytes = 1 + input.number<std::uint16_t>() % static_cast<int>(kPages * kPage);
  const auto size = static_cast<std::size_t>(bytes);
  switch (input.number<std::uint8_t>() % 11) {
    case 0:
      return require(scif_send(epd, memory, bytes, block) <= bytes);
    case 1:
      return require(scif_recv(epd, memory, bytes, block) <= bytes);
    case 2:
      return poll(epd, input);
    case 3:
      return (void)scif_register(epd, memory, pages(), 0, 3, 0);
    case 4:
      return (void)scif_unregister(epd, offset() / 4096 * 4096, pages());
    case 5:
      return (void)scif_writeto(epd, offset(), size, offset(), flags);
    case 6:
      return (void)scif_readfrom(epd, offset(), size, offset(), flags);
    case 7:
      return (void)scif_vwriteto(epd, memory, size, offset(), flags);
    case 8:
      return (void)scif_vreadfrom(epd, memory, size, offset(), flags);
    case 9:
      return fence(epd, input, peer_has_left);
    default: {
      const std::size_t mapped_bytes = pages();
      void* mapped = scif_mmap(nullptr, mapped_bytes, 3, 0, epd, offset() / 4096 * 4096);
      if (mapped == SCIF_MMAP_FAILED) return;
      static_cast<volatile char*>(mapped)[mapped_bytes - 1] = 1;
      require(scif_munmap(mapped, mapped_bytes) == 0);
    }
  }
}

/// Returns the victim's endpoint, connected or not.
scif_epd_t accept_peer(Peer& peer) {
  const scif_epd_t listener = scif_open();
  require(scif_bind(listener, kPort) == kPort && scif_listen(listener, 1) == 0);
  const auto name = fabric::shm::socket_name(0, kPort);
  UniqueFd socket = fabric::shm::make_socket("fuzz", "");
  require(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) == 0);
  peer.adopt(socket.release());
  peer.say_hello();
  peer.send(kFat);
  scif_portID whom{};
  scif_epd_t epd = -1;
  if (scif_accept(listener, &whom, &epd, 0) == 0) peer.learn();
  require(scif_close(listener) == 0);
  return epd;
}

scif_epd_t connect_to_peer(Peer& peer, Input& input) {
  const UniqueFd listener = fabric::shm::make_socket("fuzz", "");
  const auto name = fabric::shm::socket_name(0, kPort);
  require(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) == 0);
  require(::listen(listener.get(), 1) == 0);
  const scif_epd_t epd = scif_open();
  require(::fcntl(epd, F_SETFL, O_NONBLOCK) == 0);
  scif_portID to{.node = 0, .port = kPort};
  require(scif_connect(epd, &to) == -1 && errno == EINPROGRESS);
  peer.adopt(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  peer.learn();
  if (!input.one_in(8)) peer.say_hello();
  peer.act();
  (void)scif_connect(epd, &to);
  return epd;
}

std::byte* make_memory() {
  void* memory = ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED);
  return static_cast<std::byte*>(memory);
}

/// An arena, and what a thread waits by.
void open_what_a_process_keeps() {
  constexpr std::uint8_t kZero = 0;
  Input none({&kZero, 1});
  Peer peer(none);
  std::byte* const memory = make_memory();
  const scif_epd_t epd = accept_peer(peer);
  require(epd >= 0);
  poll(epd, none);
  require(scif_register(epd, memory, kPage, 0, 3, 0) > 0);
  require(scif_vwriteto(epd, memory, kPage, 0, 0) == -1 && errno == ENXIO);
  require(scif_close(epd) == 0);
}

}  // namespace
}  // namespace wherry::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  wherry::fuzz::quieten();
  wherry::fuzz::open_what_a_process_keeps();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  static std::byte* const memory = fuzz::make_memory();
  const std::size_t open_before = open_descriptors();
  {
    fuzz::Input input({data, size});
    fuzz::Peer peer(input);
    const scif_epd_t epd = input.one_in(2) ? fuzz::connect_to_peer(peer, input) : fuzz::accept_peer(peer);
    while (epd >= 0 && !input.empty()) {
      peer.act();
      fuzz::one_call(epd, input, memory, peer.has_left());
    }
    if (epd >= 0) fuzz::require(scif_close(epd) == 0);
  }
  fuzz::require(open_descriptors() == open_before);
  return 0;
}
