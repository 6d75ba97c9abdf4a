// SPDX-License-Identifier: Apache-2.0
// A stranger at the rendezvous between hosts: anything but a proof, to a listener and to a connector; and one that has
// the key and proves hellos that are bent. It is dropped or refused, or it is a visitor with a proof; nothing leaks.
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include <wherry/error.hpp>

#include "base/open_descriptors.hpp"
#include "base/unique_fd.hpp"
#include "fabric/ofi/callers.hpp"
#include "fabric/ofi/hello.hpp"
#include "fabric/ofi/ports.hpp"
#include "fabric/ofi/rendezvous.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/quieten.hpp"

namespace wherry::fuzz {
namespace {

using namespace fabric::ofi;
namespace layout = fabric::ofi::layout;

constexpr std::uint16_t kNode = 5;
constexpr std::uint16_t kPort = 80;
constexpr std::uint64_t kFirstId = 2;

Settings settings() {
  return {.key = {}, .job = "fuzz", .ports = {20000, 20015}, .host_timeout = std::chrono::hours(1)};
}

struct Pair {
  UniqueFd ours;
  UniqueFd theirs;
};

/// Two ends of a TCP connection. The kernel lets a port go before the peer's end is read, so no port is used up.
Pair connected() {
  static const UniqueFd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  static const sockaddr_in address = [] {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof any;
    if (::bind(listening.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
        ::listen(listening.get(), 2) != 0 ||
        ::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&any), &length) != 0) {
      std::abort();
    }
    return any;
  }();
  Pair pair;
  pair.theirs = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const linger reset{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(pair.theirs.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  if (::connect(pair.theirs.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) std::abort();
  pair.ours = UniqueFd(::accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  return pair;
}

template <class Message>
void bend(Input& input, Message& message) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(&message);
  while (input.one_in(2)) bytes[input.number<std::uint16_t>() % sizeof message] ^= input.number<std::uint8_t>();
}

template <class Message>
void say(Input& input, int socket, const Message& message) {
  const auto bytes = std::as_bytes(std::span(&message, 1));
  (void)send_whole(socket, input.one_in(8) ? bytes.first(input.number<std::uint16_t>() % bytes.size()) : bytes);
}

void say_anything(Input& input, int socket) {
  const auto bytes = input.take(input.number<std::uint8_t>());
  (void)send_whole(socket, std::as_bytes(bytes));
}

void attack_listener(Input& input) {
  const UniqueFd poller = make_poller();
  Callers callers(settings(), kNode, kPort, poller.get(), kFirstId);
  Pair pair = connected();
  if (!callers.add(std::move(pair.ours))) std::abort();
  if (input.one_in(4)) say_anything(input, pair.theirs.get());
  layout::Question question{.version = layout::kRendezvousVersion,
                            .magic = layout::kRendezvousMagic,
                            .job = job_number("fuzz"),
                            .node = kNode,
                            .port = kPort,
                            .zero = 0,
                            .nonce = {}};
  bend(input, question);
  say(input, pair.theirs.get(), question);
  callers.hear(kFirstId);
  layout::Answer answer{};
  (void)::recv(pair.theirs.get(), &answer, sizeof answer, MSG_DONTWAIT);
  auto hello = make_hello(layout::Kind::hello, job_number("fuzz"), {});
  const bool has_key = input.one_in(2);
  if (has_key) bend(input, *hello);
  Transcript transcript(settings().key);
  transcript.add(std::as_bytes(std::span(&question, 1)));
  transcript.add(std::as_bytes(std::span(&answer, 1)));
  prove(*hello, transcript, kConnectorRole);
  const layout::Hello proved = *hello;
  if (!has_key) bend(input, *hello);
  const bool is_bent = !has_key && std::memcmp(&proved, hello.get(), sizeof proved) != 0;
  say(input, pair.theirs.get(), *hello);
  for (int i = 0; i < 3; ++i) callers.hear(kFirstId);
  if (callers.visitor() == nullptr) return;
  if (is_bent || callers.visitor()->peer.data.size() > Introduction::kMostData) std::abort();
  if (input.one_in(2)) callers.refuse("no");
  (void)callers.accept({});
}

/// Reads one thing that the connector sends.
template <class Message>
bool hear(RendezvousConnector& connector, int socket, Message& message) {
  try {
    (void)connector.advance();
  } catch (const Error& error) {
    if (error.code().value() == 0 || error.advice().empty()) std::abort();
    return false;
  }
  return ::recv(socket, &message, sizeof message, MSG_DONTWAIT) == sizeof message;
}

void attack_connector(Input& input) {
  const PortOrder order(settings().ports, job_number("fuzz"), kNode, kPort);
  const UniqueFd listening = listen_on_first_free(order);
  RendezvousConnector connector(settings(), "127.0.0.1", kNode, kPort, {}, std::nullopt);
  const UniqueFd socket(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) return;  // another program has its first port, which the connector asks first
  const linger reset{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  layout::Question question{};
  if (!hear(connector, socket.get(), question)) return;
  layout::Answer answer{.version = layout::kRendezvousVersion,
                        .magic = layout::kRendezvousMagic,
                        .verdict = static_cast<std::uint32_t>(layout::Verdict::yes),
                        .zero = 0,
                        .nonce = {}};
  if (input.one_in(4)) bend(input, answer);
  say(input, socket.get(), answer);
  auto hello = std::make_unique<layout::Hello>();
  if (!hear(connector, socket.get(), *hello)) return;
  Transcript transcript(settings().key);
  transcript.add(std::as_bytes(std::span(&question, 1)));
  transcript.add(std::as_bytes(std::span(&answer, 1)));
  if (!is_proved(*hello, transcript, kConnectorRole)) std::abort();
  for (const auto kind : {layout::Kind::receipt, layout::Kind::hello}) {
    auto reply = make_hello(kind, job_number("fuzz"), {});
    const bool has_key = !input.one_in(4);
    if (has_key) bend(input, *reply);
    prove(*reply, transcript, kListenerRole);
    if (!has_key) bend(input, *reply);
    say(input, socket.get(), *reply);
    if (input.one_in(4)) say_anything(input, socket.get());
    (void)hear(connector, socket.get(), question);
  }
}

}  // namespace
}  // namespace wherry::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  wherry::fuzz::quieten();
  const wherry::fuzz::Pair first = wherry::fuzz::connected();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  const std::size_t open_before = open_descriptors();
  fuzz::Input input({data, size});
  if (input.one_in(2)) {
    fuzz::attack_connector(input);
  } else {
    fuzz::attack_listener(input);
  }
  if (open_descriptors() != open_before) std::abort();
  return 0;
}
