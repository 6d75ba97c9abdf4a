// SPDX-License-Identifier: Apache-2.0
// Strangers at both sides of a rendezvous, without the key: scanners, other programs, replays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/open_descriptors.hpp"
#include "fabric/ofi/callers.hpp"
#include "fabric/ofi/hello.hpp"
#include "fabric/ofi/ports.hpp"
#include "fabric/ofi/rendezvous.hpp"
#include "fabric/ofi/rendezvous_fixture.hpp"

namespace wherry::fabric::ofi {
namespace {

using testing::HasSubstr;

constexpr std::uint16_t kNode = 5;
constexpr std::uint16_t kPort = 80;

UniqueFd call(std::uint16_t tcp_port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const linger reset{.l_onoff = 1, .l_linger = 0};  // leaves no port in TIME_WAIT
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(tcp_port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) socket.reset();
  return socket;
}

/// Returns what the listener sends until it closes.
std::vector<std::byte> drain(RendezvousListener& listener, int socket) {
  std::vector<std::byte> all;
  for (bool is_open = true; is_open;) {
    std::array<pollfd, 2> polled{{{.fd = listener.descriptor(), .events = POLLIN, .revents = 0},
                                  {.fd = socket, .events = POLLIN, .revents = 0}}};
    EXPECT_GT(::poll(polled.data(), polled.size(), -1), 0);
    if (polled[0].revents != 0) listener.advance();
    if (polled[1].revents == 0) continue;
    std::array<std::byte, 10000> some{};
    const ssize_t bytes = ::recv(socket, some.data(), some.size(), 0);
    is_open = bytes > 0;
    if (is_open) all.insert(all.end(), some.begin(), some.begin() + bytes);
  }
  return all;
}

/// Returns the listener's answers to a connector that this file simulates.
template <class Message>
Message receive(RendezvousListener& listener, int socket) {
  Incoming incoming;
  incoming.expect(sizeof(Message));
  for (;;) {
    const auto state = incoming.receive(socket);
    EXPECT_NE(state, Incoming::State::ended);
    if (state != Incoming::State::partial) return incoming.as<Message>();
    pollfd polled{.fd = listener.descriptor(), .events = POLLIN, .revents = 0};
    if (::poll(&polled, 1, 1) > 0) listener.advance();
  }
}

class Strangers : public testing::Test {
 protected:
  [[nodiscard]] layout::Question question() const {
    layout::Question question{.version = layout::kRendezvousVersion,
                              .magic = layout::kRendezvousMagic,
                              .job = job_number(settings_.job),
                              .node = kNode,
                              .port = kPort,
                              .zero = 0,
                              .nonce = {}};
    make_nonce(question.nonce);
    return question;
  }
  std::vector<std::byte> answer_to(std::string_view said) {
    const UniqueFd socket = call(listener_.tcp_port());
    EXPECT_TRUE(send_whole(socket.get(), std::as_bytes(std::span(said))));
    return drain(listener_, socket.get());
  }
  template <class Message>
  std::vector<std::byte> answer_to_message(const Message& message) {
    return answer_to({reinterpret_cast<const char*>(&message), sizeof message});
  }
  /// Real peers still meet.
  void expect_that_peers_meet() {
    RendezvousConnector connector(settings_, "127.0.0.1", kNode, kPort, test_introduction("c"), seconds_from_now(1000));
    EXPECT_TRUE(meet(listener_, connector).connector);
  }

  Settings settings_ = test_settings();
  RendezvousListener listener_{settings_, kNode, kPort};
};

TEST_F(Strangers, HttpIsDroppedAtOnce) {
  EXPECT_TRUE(answer_to("GET / HTTP/1.1\r\nHost: wherry\r\n\r\n").empty());
  expect_that_peers_meet();
}

TEST_F(Strangers, SilenceIsDroppedAfterItsTime) {
  Settings impatient = settings_;
  impatient.host_timeout = std::chrono::milliseconds(20);
  RendezvousListener listener(impatient, kNode, kPort + 1);
  const UniqueFd silent = call(listener.tcp_port());
  EXPECT_TRUE(drain(listener, silent.get()).empty());
  const UniqueFd slow = call(listener.tcp_port());
  const layout::Question question = this->question();
  EXPECT_TRUE(send_whole(slow.get(), std::as_bytes(std::span(&question, 1)).first(7)));
  EXPECT_TRUE(drain(listener, slow.get()).empty());
}

TEST_F(Strangers, AnotherAddressIsToldNo) {
  for (const int which : {0, 1, 2}) {
    layout::Question question = this->question();
    if (which == 0) ++question.job;
    if (which == 1) ++question.node;
    if (which == 2) ++question.port;
    const auto said = answer_to_message(question);
    ASSERT_EQ(said.size(), sizeof(layout::Answer));
    layout::Answer answer{};
    std::memcpy(&answer, said.data(), sizeof answer);
    EXPECT_EQ(answer.verdict, static_cast<std::uint32_t>(layout::Verdict::no));
  }
}

TEST_F(Strangers, AnotherVersionIsToldOurs) {
  layout::Question question = this->question();
  ++question.version;
  const auto said = answer_to_message(question);
  ASSERT_EQ(said.size(), sizeof(layout::Answer));
  layout::Answer answer{};
  std::memcpy(&answer, said.data(), sizeof answer);
  EXPECT_EQ(answer.version, layout::kRendezvousVersion);
  EXPECT_EQ(answer.verdict, static_cast<std::uint32_t>(layout::Verdict::version));
}

TEST_F(Strangers, AHelloThatIsReplayedProvesNothing) {
  const layout::Question question = this->question();
  const auto play = [&](const layout::Hello* recorded) {
    UniqueFd socket = call(listener_.tcp_port());
    EXPECT_TRUE(send_message(socket.get(), question));
    const auto answer = receive<layout::Answer>(listener_, socket.get());
    EXPECT_EQ(answer.verdict, static_cast<std::uint32_t>(layout::Verdict::yes));
    auto hello = make_hello(layout::Kind::hello, job_number(settings_.job), test_introduction("c"));
    if (recorded != nullptr) {
      *hello = *recorded;
    } else {
      Transcript transcript(settings_.key);
      transcript.add(std::as_bytes(std::span(&question, 1)));
      transcript.add(std::as_bytes(std::span(&answer, 1)));
      prove(*hello, transcript, kConnectorRole);
    }
    EXPECT_TRUE(send_message(socket.get(), *hello));
    const auto reply = std::make_unique<layout::Hello>(receive<layout::Hello>(listener_, socket.get()));
    return std::make_pair(static_cast<layout::Kind>(reply->kind), *hello);
  };
  const auto [kind, hello] = play(nullptr);
  EXPECT_EQ(kind, layout::Kind::receipt);
  ASSERT_NE(listener_.visitor(), nullptr);
  listener_.refuse("");
  EXPECT_EQ(play(&hello).first, layout::Kind::wrong_key);
  EXPECT_EQ(listener_.visitor(), nullptr);
}

TEST_F(Strangers, AMalformedHelloIsDropped) {
  for (const int which : {0, 1, 2, 3}) {
    const UniqueFd socket = call(listener_.tcp_port());
    const layout::Question question = this->question();
    EXPECT_TRUE(send_message(socket.get(), question));
    const auto answer = receive<layout::Answer>(listener_, socket.get());
    Transcript transcript(settings_.key);
    transcript.add(std::as_bytes(std::span(&question, 1)));
    transcript.add(std::as_bytes(std::span(&answer, 1)));
    auto hello = make_hello(which == 3 ? layout::Kind::receipt : layout::Kind::hello, job_number(settings_.job), {});
    if (which == 0) hello->data_bytes = layout::kMostDataBytes + 1;
    if (which == 1) hello->reason_bytes = layout::kMostReasonBytes + 1;
    if (which == 2) ++hello->job;
    prove(*hello, transcript, kConnectorRole);
    EXPECT_TRUE(send_message(socket.get(), *hello));
    EXPECT_TRUE(drain(listener_, socket.get()).empty()) << which;
    EXPECT_EQ(listener_.visitor(), nullptr);
  }
}

TEST_F(Strangers, AreBoundedInNumber) {
  const std::size_t before = open_descriptors();
  std::vector<UniqueFd> silent;
  for (std::size_t i = 0; i < Callers::kMostStrangers + 50; ++i) {
    silent.push_back(call(listener_.tcp_port()));
    listener_.advance();
  }
  listener_.advance();
  EXPECT_EQ(open_descriptors(), before + silent.size() + Callers::kMostStrangers);
  expect_that_peers_meet();
}

TEST_F(Strangers, TenThousandKnocksKeepNoPeerOut) {
  std::atomic<bool> knocks{true};
  std::thread knocking([&knocks, port = listener_.tcp_port()] {
    std::array<UniqueFd, 300> silent;
    for (std::size_t i = 0; i < 10'000; ++i) {
      UniqueFd socket = call(port);
      if (i % 3 == 0 && socket.valid()) (void)send_whole(socket.get(), std::as_bytes(std::span("GET / HTTP/1.1\r\n")));
      silent[i % silent.size()] = std::move(socket);
    }
    knocks = false;
  });
  while (knocks) expect_that_peers_meet();
  knocking.join();
  expect_that_peers_meet();
}

TEST_F(Strangers, WithoutDescriptorsACallerIsDroppedAndAPeerIsLetInLater) {
  RendezvousConnector connector(settings_, "127.0.0.1", kNode, kPort, test_introduction("c"), seconds_from_now(1000));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = UniqueFd(::dup(connector.descriptor())).get();
  pollfd polled{.fd = listener_.descriptor(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&polled, 1, -1), 1);
  const rlimit few{.rlim_cur = static_cast<rlim_t>(lowest_free), .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  int error = 0;
  try {
    listener_.advance();
  } catch (const Error& thrown) {
    error = thrown.code().value();
  }
  EXPECT_EQ(::poll(&polled, 1, 0), 0) << "the service thread would spin";
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(error, EMFILE);
  EXPECT_TRUE(meet(listener_, connector).connector);
}

/// A listener that this file simulates, at the first port that a connector asks.
class FalseListener {
 public:
  explicit FalseListener(const Settings& settings)
      : job_(job_number(settings.job)),
        listening_(listen_on_first_free(PortOrder(settings.ports, job_, kNode, kPort))) {}

  /// Answers each connector with `said`, and its hello with what `reply` makes of it.
  Error failure(const Settings& settings, const std::string& said,
                const std::function<layout::Hello(const layout::Hello&)>& reply = nullptr) {
    std::thread playing([&] {
      const UniqueFd socket = accept_own();
      listening_.reset();
      (void)send_whole(socket.get(), std::as_bytes(std::span(said)));
      auto hello = std::make_unique<layout::Hello>();
      if (reply == nullptr || ::recv(socket.get(), hello.get(), sizeof *hello, MSG_WAITALL) <= 0) return;
      (void)send_message(socket.get(), reply(*hello));
      char byte = 0;
      (void)::recv(socket.get(), &byte, 1, 0);  // until the connector has closed
    });
    RendezvousConnector connector(settings, "127.0.0.1", kNode, kPort, test_introduction("c"), std::nullopt);
    Error error = failure_of(nullptr, connector);
    playing.join();
    return error;
  }

 private:
  /// Connectors of other test programs may look here, too.
  UniqueFd accept_own() {
    for (;;) {
      pollfd polled{.fd = listening_.get(), .events = POLLIN, .revents = 0};
      (void)::poll(&polled, 1, -1);
      UniqueFd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      layout::Question question{};
      const ssize_t got = ::recv(socket.get(), &question, sizeof question, MSG_WAITALL);
      if (got == static_cast<ssize_t>(sizeof question) && question.job == job_) return socket;
    }
  }

  std::uint64_t job_;
  UniqueFd listening_;
};

std::string answer_text(std::uint32_t version, layout::Verdict verdict) {
  const layout::Answer answer{.version = version,
                              .magic = layout::kRendezvousMagic,
                              .verdict = static_cast<std::uint32_t>(verdict),
                              .zero = 0,
                              .nonce = {}};
  return {reinterpret_cast<const char*>(&answer), sizeof answer};
}

TEST(FalseListeners, OfAnotherVersionAreNamed) {
  const Settings settings = test_settings();
  const Error error =
      FalseListener(settings).failure(settings, answer_text(layout::kRendezvousVersion + 1, layout::Verdict::version));
  EXPECT_EQ(error.code().value(), EPROTO);
  EXPECT_THAT(error.what(), HasSubstr("speaks version 2 and this process version 1; install the same Wherry on both"));
}

TEST(FalseListeners, OtherProgramsArePassedBy) {
  const Settings settings = test_settings();
  for (const std::string& said : {std::string("SSH-2.0-OpenSSH_9.2\r\n"), std::string(200, 'x'), std::string()}) {
    EXPECT_EQ(FalseListener(settings).failure(settings, said).code().value(), ECONNREFUSED) << said;
  }
}

TEST(FalseListeners, ThatSendBackTheConnectorsProofAreNotTaken) {
  const Settings settings = test_settings();
  const std::string yes = answer_text(layout::kRendezvousVersion, layout::Verdict::yes);
  const auto reflected = [](const layout::Hello& hello) { return hello; };
  EXPECT_EQ(FalseListener(settings).failure(settings, yes, reflected).code().value(), EACCES);
  const auto as_receipt = [](layout::Hello hello) {
    hello.kind = static_cast<std::uint32_t>(layout::Kind::receipt);
    return hello;
  };
  EXPECT_EQ(FalseListener(settings).failure(settings, yes, as_receipt).code().value(), EACCES);
}

TEST(FalseListeners, ThatAreFullAreNamed) {
  const Settings settings = test_settings();
  const Error error =
      FalseListener(settings).failure(settings, answer_text(layout::kRendezvousVersion, layout::Verdict::full));
  EXPECT_EQ(error.code().value(), ECONNREFUSED);
  EXPECT_THAT(error.what(), HasSubstr("too many connectors wait there to be accepted; accept faster"));
}

}  // namespace
}  // namespace wherry::fabric::ofi
