// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "base/config.hpp"
#include "fabric/ofi/callers.hpp"
#include "fabric/ofi/ports.hpp"
#include "fabric/ofi/rendezvous.hpp"

namespace wherry::fabric::ofi {
namespace {

constexpr std::uint64_t kListeningId = 0;
constexpr std::uint64_t kTimerId = 1;
constexpr std::uint64_t kFirstCallerId = 2;
/// The ports below are SCIF's, or chosen by programs (fabric/shm/listener.cc).
constexpr std::uint32_t kFirstFreePort = 1089;
/// Connections accepted by one call. Limited, so that a flood of them does not delay visitors.
constexpr int kTakenAtOnce = 64;

std::string name_of(std::uint16_t node, std::optional<std::uint16_t> port) {
  return Address{.fabric = "ofi", .node = node, .port = port}.to_string();
}

UniqueFd spare_descriptor() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool lacks_means(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS; }

}  // namespace

Settings Settings::from_environment() {
  const std::string file = config::word(config::Key::network_key);
  if (file.empty()) {
    throw Error(EACCES, "read key", "WHERRY_KEY",
                "it is not set, and without a key no other host is let in; make one with: wherry key FILE; copy it to "
                "each host, and set WHERRY_KEY=FILE there");
  }
  const std::string ports = config::word(config::Key::ports);
  return {.key = read_key_file(file),
          .job = config::word(config::Key::job),
          .ports = *PortRange::parse(ports),
          .host_timeout = std::chrono::milliseconds(config::number(config::Key::host_timeout))};
}

class RendezvousListener::State {
 public:
  State(const Settings& settings, std::uint16_t node, std::optional<std::uint16_t> port)
      : held_(hold(settings.job, node, port)),
        listening_(listen_on_first_free(PortOrder(settings.ports, job_number(settings.job), node, port_))),
        tcp_port_(SocketAddress::local_of(listening_.get()).port()),
        poller_(make_poller()),
        spare_(spare_descriptor()),
        callers_(settings, node, port_, poller_.get(), kFirstCallerId) {
    if (!poll_for(poller_.get(), listening_.get(), EPOLLIN, kListeningId) ||
        !poll_for(poller_.get(), timer_.descriptor(), EPOLLIN, kTimerId)) {
      throw Error(errno, "listen", name_of(node, port_), "raise fs.epoll.max_user_watches");
    }
  }

  void advance() {
    std::array<epoll_event, kTakenAtOnce> events{};
    const int count = ::epoll_wait(poller_.get(), events.data(), static_cast<int>(events.size()), 0);
    bool is_called = false;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
      if (id >= kFirstCallerId) callers_.hear(id);
      is_called |= id == kListeningId;
    }
    callers_.drop_late(Timer::Clock::now());
    const int error = is_called ? take_callers() : 0;
    timer_.set(callers_.next_late());
    if (error != 0) {
      throw Error(error, "accept", "a connector from another host", "raise the limit of open files: ulimit -n");
    }
  }

  Callers& callers() { return callers_; }
  [[nodiscard]] int descriptor() const { return poller_.get(); }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::uint16_t tcp_port() const { return tcp_port_; }

 private:
  /// Reserves the port, or the first free one, and sets port_.
  UniqueFd hold(const std::string& job, std::uint16_t node, std::optional<std::uint16_t> port) {
    for (std::uint32_t tried = port.value_or(kFirstFreePort); tried <= UINT16_MAX; ++tried) {
      port_ = static_cast<std::uint16_t>(tried);
      UniqueFd held = hold_address(job, node, port_);
      if (held.valid()) return held;
      if (errno != EADDRINUSE) throw Error(errno, "listen", name_of(node, port), "raise ulimit -n if it is short");
      if (port) break;
    }
    throw Error(EADDRINUSE, "listen", name_of(node, port),
                "another process of this host listens there; use another port, or * for a free one");
  }

  /// Accepts connections. Returns 0, or an errno value if this process has no resources for another one.
  int take_callers() {
    for (int taken = 0; taken < kTakenAtOnce; ++taken) {
      UniqueFd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket.valid()) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        const int error = errno;
        if (error == EMFILE || error == ENFILE) drop_one();
        return lacks_means(error) ? error : 0;
      }
      if (!callers_.add(std::move(socket))) return errno;
    }
    return 0;
  }

  /// Drops one connection. If it stayed in the kernel's queue, the descriptor would stay readable.
  void drop_one() {
    spare_.reset();
    const UniqueFd dropped(::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    spare_ = spare_descriptor();
  }

  std::uint16_t port_ = 0;
  UniqueFd held_;
  UniqueFd listening_;
  std::uint16_t tcp_port_;
  UniqueFd poller_;
  Timer timer_;
  UniqueFd spare_;
  Callers callers_;
};

RendezvousListener::RendezvousListener(const Settings& settings, std::uint16_t node, std::optional<std::uint16_t> port)
    : state_(std::make_unique<State>(settings, node, port)) {}
RendezvousListener::RendezvousListener(RendezvousListener&&) noexcept = default;
RendezvousListener& RendezvousListener::operator=(RendezvousListener&&) noexcept = default;
RendezvousListener::~RendezvousListener() = default;

std::uint16_t RendezvousListener::port() const { return state_->port(); }
std::uint16_t RendezvousListener::tcp_port() const { return state_->tcp_port(); }
int RendezvousListener::descriptor() const { return state_->descriptor(); }
void RendezvousListener::advance() { state_->advance(); }
const RendezvousListener::Visitor* RendezvousListener::visitor() const { return state_->callers().visitor(); }
std::optional<Meeting> RendezvousListener::accept(const Introduction& own) { return state_->callers().accept(own); }
void RendezvousListener::refuse(std::string_view reason) { state_->callers().refuse(reason); }

}  // namespace wherry::fabric::ofi
