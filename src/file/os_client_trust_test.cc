// SPDX-License-Identifier: Apache-2.0
// Which processes a card's process serves, and which are taken for it.
#include "tests/common/os_client_fixture.hpp"

#include <cerrno>
#include <filesystem>
#include <thread>

#include <wherry/address.hpp>
#include <wherry/error.hpp>
#include <wherry/stream.hpp>

namespace wherry::file {
namespace {

/// What the card's process says to one that sends this token: nothing before it has let it in.
std::size_t bytes_said_to(const Cache::CardServer& server, std::uint64_t token) {
  Stream stream = connect("wherry+shm://0:" + std::to_string(server.port));
  const layout::FileHello hello = hello_with(token);
  (void)stream.send(std::as_bytes(std::span(&hello, 1)));
  std::array<std::byte, sizeof hello> answer{};
  return stream.receive_all(answer).bytes;
}

TEST_F(OsPath, OnlyProcessesOfTheCardThatKnowItsTokenAreServed) {
  const Child card = start_card();
  ASSERT_FALSE(cache_.attach(path_.c_str()));
  const Cache::CardServer server = cache_.card_server();
  EXPECT_EQ(server.process, card.pid());
  EXPECT_NE(server.token, server.proof);
  for (const std::uint64_t wrong : {std::uint64_t{0}, server.proof, server.token + 1, ~server.token}) {
    EXPECT_EQ(bytes_said_to(server, wrong), 0U);
  }
  EXPECT_EQ(bytes_said_to(server, server.token), sizeof(layout::FileHello));
  Child stranger([&] { return bytes_said_to(server, server.token) == 0; });  // in no table
  EXPECT_EQ(stranger.wait(), 0);
}

/// What listens where a card is said to be: greets with `proof`, and notes what it was told.
class Impostor {
 public:
  explicit Impostor(std::uint64_t proof)
      : thread_([this, proof] {
          Stream stream = listener_.accept();
          layout::FileHello heard{};
          if (!stream.receive_all(std::as_writable_bytes(std::span(&heard, 1))).ok()) return;
          heard_ = heard.token;
          const layout::FileHello hello = hello_with(proof);
          (void)stream.send(std::as_bytes(std::span(&hello, 1)));
        }) {}
  ~Impostor() {
    if (thread_.joinable()) thread_.join();
  }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;

  /// The error of a client that takes it for the card whose process is `process`.
  int error_of_client(std::int64_t process, std::uint64_t proof) {
    const Address address = listener_.local();
    const Cache::CardServer card{.port = address.port.value_or(0), .process = process, .token = 5, .proof = proof};
    int error = 0;
    try {
      const HostConnection connection(address.to_string(), 0, {}, HostConnection::kNoWait, {}, &card);
    } catch (const Error& refused) {
      error = refused.code().value();
    }
    thread_.join();
    return error;
  }
  [[nodiscard]] std::uint64_t heard() const { return heard_; }

 private:
  Listener listener_ = listen("wherry+shm://*:*");
  std::uint64_t heard_ = 0;
  std::thread thread_;
};

TEST_F(OsPath, AnotherProcessThatListensThereIsNotTakenForTheCardNorToldItsToken) {
  Impostor right(7);
  EXPECT_EQ(right.error_of_client(::getpid(), 7), 0);
  EXPECT_EQ(right.heard(), 5U);
  Impostor ignorant(6);
  EXPECT_EQ(ignorant.error_of_client(::getpid(), 7), EACCES);
  Impostor another(7);
  EXPECT_EQ(another.error_of_client(::getppid(), 7), EACCES);
  EXPECT_EQ(another.heard(), 0U);
}

TEST_F(OsPath, ACardIsNoClientOfItsOwn) {
  Child card = start_card(true);
  EXPECT_EQ(card.wait(), 0);
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace wherry::file
