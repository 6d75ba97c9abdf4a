// SPDX-License-Identifier: Apache-2.0
// What the mailbox suites share: mailboxes that meet on the fabric under test.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include <wherry/wherry.hpp>

#include "base/scoped_environment.hpp"
#include "tests/common/pattern.hpp"
#include "tests/conformance/fabric_pair.hpp"

namespace wherry::conformance {

class MailboxTest : public ::testing::TestWithParam<FabricUnderTest> {
 protected:
  MailboxTest();

  [[nodiscard]] Address address() const {
    return Address::parse("wherry+" + std::string(GetParam().fabric) + "://*:*");
  }
  /// One that listens.
  [[nodiscard]] Mailbox listening(const MailboxOptions& options = {}) const;
  /// Where a mailbox listens, on the fabric under test.
  [[nodiscard]] static Address where(const Mailbox& mailbox);
  /// `from` connects to `to`, and both make progress until a message can pass. Returns what `from` knows `to` by.
  [[nodiscard]] Mailbox::Peer join(Mailbox& from, Mailbox& to) const;

  const Pattern pattern_{17};

 private:
  ScopedEnvironment faults_;
};

/// Lets both make progress until `done()`.
template <class Done>
void drive(std::initializer_list<Mailbox*> mailboxes, Done&& done) {
  const auto end = in(kTimeout);
  while (!done()) {
    for (Mailbox* mailbox : mailboxes) mailbox->progress();
    if (std::chrono::steady_clock::now() > *end) throw std::runtime_error("nothing more happens");
  }
}

/// A message of `bytes` bytes that follow `pattern` from `position` on goes from one to the other, in as many pieces as
/// it takes; both make progress in turn.
void pass(Mailbox& from, Mailbox::Peer to, Mailbox& into, const Pattern& pattern, std::size_t bytes,
          std::uint64_t position = 0);
/// Receives a whole message, and makes progress in `others` meanwhile.
std::vector<std::byte> receive(Mailbox& into, Mailbox::Peer& from, std::initializer_list<Mailbox*> others = {});

}  // namespace wherry::conformance
