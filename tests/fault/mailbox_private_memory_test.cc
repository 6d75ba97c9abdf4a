// SPDX-License-Identifier: Apache-2.0
// A mailbox reads the memory of its peer's process, if the kernel lets it.
#include <sys/syscall.h>

#include <algorithm>
#include <bit>

#include "tests/common/seccomp.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

class MailboxPrivateMemory : public FaultTest {
 protected:
  /// A process that tells where its copy of the pattern lies, and waits.
  Child teller(const Address& where) {
    return Child([this, where] {
      const auto content = pattern_.bytes(kBytes);
      const std::uint64_t address = std::bit_cast<std::uintptr_t>(content.data());
      Mailbox mailbox;
      if (!mailbox.send(mailbox.connect(where), std::as_bytes(std::span(&address, 1))).ok()) return false;
      while (true) mailbox.wait();
    });
  }
  static std::uint64_t told(Mailbox& mailbox, Mailbox::Peer& from) {
    std::uint64_t address = 0;
    const Result result = mailbox.receive(std::as_writable_bytes(std::span(&address, 1)), from, kTimeout);
    EXPECT_TRUE(result.ok()) << result;
    return address;
  }
  static Mailbox listening() {
    Mailbox mailbox;
    mailbox.listen(Address::parse(address()));
    return mailbox;
  }

  static constexpr std::size_t kBytes = 3'000'001;
};

TEST_F(MailboxPrivateMemory, OfAPeersProcessIsRead) {
  Mailbox mailbox = listening();
  const Child peer = teller(mailbox.local());
  Mailbox::Peer from = Mailbox::kNoPeer;
  const std::uint64_t address = told(mailbox, from);
  ASSERT_TRUE(mailbox.reaches_private_memory(from));
  std::vector<std::byte> copy(kBytes);
  EXPECT_EQ(mailbox.read_private(from, copy, address), kBytes);
  EXPECT_TRUE(pattern_.matches(copy, 0));
  EXPECT_EQ(mailbox.read_private(from, copy, 8), 0U) << "nothing is there";
}

TEST_F(MailboxPrivateMemory, OfAPeerThatDiedIsNotRead) {
  Mailbox mailbox = listening();
  Child peer = teller(mailbox.local());
  Mailbox::Peer from = Mailbox::kNoPeer;
  const std::uint64_t address = told(mailbox, from);
  ASSERT_TRUE(mailbox.reaches_private_memory(from));
  peer.kill();
  (void)peer.wait();
  std::vector<std::byte> copy(kBytes);
  EXPECT_EQ(mailbox.read_private(from, copy, address), 0U);
  Mailbox::Loss loss{};
  while (mailbox.losses(std::span(&loss, 1)) == 0) mailbox.wait(kTimeout);
  EXPECT_FALSE(mailbox.reaches_private_memory(from));
}

TEST_F(MailboxPrivateMemory, IsOutOfReachWhereTheKernelRefuses) {
  Child other([&] {
    if (!refuse({SYS_process_vm_readv})) return false;
    Mailbox mailbox = listening();
    const Child peer = teller(mailbox.local());
    Mailbox::Peer from = Mailbox::kNoPeer;
    (void)told(mailbox, from);
    return !mailbox.reaches_private_memory(from) && !HasFailure();
  });
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace wherry::fault
