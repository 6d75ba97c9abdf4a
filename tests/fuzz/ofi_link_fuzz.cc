// SPDX-License-Identifier: Apache-2.0
// A connection between hosts whose peer has proved to hold the key and then sends what it likes: messages, words, and
// writes into what was exposed to it. A model says which of it makes sense, and what memory then holds. Whatever else
// arrives ends the connection; nothing outside the segment and exposed memory is touched; and the endpoint reads and
// writes the program's memory only until a flush has given it back.
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <wherry/error.hpp>

#include "base/open_descriptors.hpp"
#include "fabric/ofi/connection.hpp"
#include "fabric/ofi/service.hpp"
#include "memory/arena.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/ofi/hostile_peer.hpp"
#include "tests/fuzz/quieten.hpp"

namespace wherry::fuzz {
namespace {

using namespace fabric::ofi;
using fabric::Bell;
using fabric::Deadline;

constexpr int kEndpointDescriptor = -1;

/// A heap block of exactly a page, so that one byte outside is seen.
struct Page {
  Page() : bytes(static_cast<std::byte*>(std::aligned_alloc(kPage, kPage))) { std::memset(bytes, 0, kPage); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() { std::free(bytes); }
  std::byte* bytes;
};

/// Pages that the program exposes: the same for all inputs, as an arena hands out each place once.
std::span<std::byte> exposed_pages() {
  static const std::span<std::byte> pages(
      static_cast<std::byte*>(::mmap(nullptr, kExposed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
      kExposed);
  return pages;
}

/// The program that has the connection.
class Victim {
 public:
  explicit Victim(Input& input) : input_(input) {
    std::array<int, 2> sockets{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) == 0);
    peers_socket_ = UniqueFd(sockets[1]);
    Meeting meeting{.socket = UniqueFd(sockets[0]), .peer = {}, .local = {}, .remote = {}, .token = {}};
    meeting.peer.segment_bytes = kPage;
    rendezvous_ = sockets[0];
    peer_.on_idle = [this] { serve_or_end(); };
    const Link::Sides sides{{segment_.bytes, kPage}, kPage, exposes_};
    connection_ = std::make_unique<OfiConnection>(OwnSegment({.segment_bytes = kPage, .memory = segment_.bytes}), link_,
                                                  Peer{}, exposes_);
    const std::lock_guard serving(service_.mutex());
    if (input_.one_in(2)) {
      link_->dial(service_, std::move(meeting), sides, 1);
    } else {
      link_->expect(service_, std::move(meeting), sides);
      link_->accept(service_, Knock(nullptr, nullptr, {}));
    }
    if (!input_.one_in(4)) connect();
    if (!input_.one_in(4)) expose();
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  void run() {
    while (!input_.empty()) {
      act();
      check();
    }
    const std::weak_ptr<Link> link = link_;
    link_.reset();
    reached_.reset();
    connection_.reset();
    require(peer_.is_cut_off());
    require(link.expired());
  }

 private:
  void act() {
    switch (input_.number<std::uint8_t>() % 16) {
      case 0: {
        const auto bytes = staged();
        require(connection_->put(offset(), bytes) <= bytes.size());
        break;
      }
      case 1: {
        const auto bytes = staged();
        (void)connection_->put_and_signal(offset(), bytes, word(), input_.number<std::uint64_t>(), bell());
        break;
      }
      case 2: {
        const auto bytes = staged();
        (void)connection_->get(bytes, offset());
        break;
      }
      case 3:
        (void)connection_->signal(word(), input_.number<std::uint64_t>(), bell());
        break;
      case 4:
        flush();
        break;
      case 5:
        use_bell();
        break;
      case 6:
        connection_->progress(Bell::data);
        if (input_.one_in(2)) connection_->end_progress(Bell::data);
        break;
      case 7:
        expose();
        break;
      case 8:
        reach();
        break;
      case 9:
        use_reached();
        break;
      case 10:
        connect_or_end();
        break;
      default:
        serve();
    }
  }

  std::uint64_t offset() { return input_.number<std::uint16_t>() % (kPage + 16); }
  std::uint64_t word() { return input_.number<std::uint8_t>() * std::uint64_t{input_.one_in(16) ? 4U : 8U}; }
  Bell bell() { return input_.one_in(2) ? Bell::space : Bell::data; }

  /// The next bytes of a buffer, which follow the last ones until it is used up.
  std::span<std::byte> staged() {
    const std::size_t most = input_.one_in(4) ? kPage : 64;
    const std::size_t bytes = 1 + input_.number<std::uint16_t>() % most;
    if (buffers_.empty() || kPage - at_ < bytes) {
      buffers_.push_back(std::make_unique<Page>());
      at_ = 0;
    }
    const std::size_t from = at_;
    at_ += bytes;
    return {buffers_.back()->bytes + from, bytes};
  }

  void flush() {
    const auto now = std::chrono::steady_clock::now();
    const Result result = connection_->flush(input_.one_in(2) ? now : now + std::chrono::hours(1));
    require(result.ok() || result.error == ETIMEDOUT || (result.error == ECONNRESET && connection_->peer_gone()));
    if (result.error == ETIMEDOUT) return;
    // Everything is complete, or the endpoint is gone.
    require(!peer_.holds_memory());
    buffers_.clear();
  }

  void use_bell() {
    const Bell rung = bell();
    connection_->arm(rung);
    if (input_.one_in(2)) (void)connection_->wait(rung, std::chrono::steady_clock::now());
    (void)connection_->silence(rung);
    connection_->disarm(rung);
  }

  void expose() {
    if (!exposes_) return;
    exposed_.reset();
    peer_.exposed_key = {};
    if (input_.one_in(4)) return;
    exposed_ = connection_->exposure()->expose(exposed_pages());
    peer_.exposed_key = exposed_->pieces().front().key;
  }

  void reach() {
    int error = 0;
    const std::size_t bytes = 1 + input_.number<std::uint16_t>();
    reached_ = connection_->exposure()->reach({input_.number<std::uint64_t>(), 1}, bytes, error);
    require(reached_ != nullptr || error != 0);
  }

  void use_reached() {
    if (reached_ == nullptr || !reached_->has_room()) return;
    const auto bytes = staged();
    if (input_.one_in(3)) {
      (void)reached_->put(offset(), bytes);
    } else if (input_.one_in(2)) {
      (void)reached_->get(bytes, offset());
    } else {
      (void)reached_->signal(word(), input_.number<std::uint64_t>());
    }
  }

  void connect_or_end() {
    const auto choice = input_.number<std::uint8_t>() % 16;
    if (choice == 0) {
      end(input_.number<std::uint8_t>());
    } else if (choice == 1) {
      peers_socket_.reset();
      const std::lock_guard serving(service_.mutex());
      (void)link_->serve(rendezvous_);
    } else {
      const std::lock_guard serving(service_.mutex());
      connect();
    }
  }

  void connect() {
    if (!std::exchange(is_connected_, true)) link_->on_connected();
  }

  void end(int error) {
    const std::lock_guard serving(service_.mutex());
    link_->on_end(error);
  }

  /// As after a millisecond in which no waiter has driven the link.
  void end_leases() {
    connection_->arm(Bell::data);
    connection_->disarm(Bell::data);
  }

  void serve() {
    end_leases();
    const std::lock_guard serving(service_.mutex());
    (void)link_->serve(kEndpointDescriptor);
  }

  void serve_or_end() {
    if (input_.empty()) {
      end(0);
    } else {
      serve();
    }
  }

  void check() {
    end_leases();
    {
      const std::lock_guard serving(service_.mutex());
      if (input_.one_in(4) || peer_.model.is_broken()) (void)link_->look(true);
    }
    const bool is_gone = connection_->peer_gone();
    require(is_gone || !peer_.model.is_broken());
    require(!is_gone || peer_.is_cut_off());
    require(std::memcmp(segment_.bytes, peer_.model.segment().data(), kPage) == 0);
  }

  Input& input_;
  Service& service_ = Service::instance();
  const Page segment_;
  const bool exposes_ = !input_.one_in(4);
  HostilePeer peer_{input_, {segment_.bytes, kPage}};
  UniqueFd peers_socket_;
  int rendezvous_ = -1;
  std::shared_ptr<Link> link_ = std::make_shared<Link>();
  std::vector<std::unique_ptr<Page>> buffers_;
  std::size_t at_ = 0;
  bool is_connected_ = false;
  std::unique_ptr<OfiConnection> connection_;
  std::shared_ptr<memory::LocalRegion> exposed_;
  std::shared_ptr<memory::RemoteRegion> reached_;
};

}  // namespace
}  // namespace wherry::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  wherry::fuzz::quieten();
  // What stays open for all inputs.
  (void)wherry::fabric::ofi::Service::instance();
  const auto exposed = wherry::memory::Arena::instance().expose(wherry::fuzz::exposed_pages());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  const std::size_t open_before = open_descriptors();
  fuzz::Input input({data, size});
  fuzz::Victim(input).run();
  if (open_descriptors() != open_before) std::abort();
  return 0;
}
