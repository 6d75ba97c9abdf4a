// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/mailbox.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/harness/registry.hpp"
#include "bench/harness/system.hpp"

namespace wherry::bench::mailbox {

/// One way to divide a mailbox. It answers `wherry bench mailbox` alone, which measures it by StartedMailboxes.
class MailboxSystem final : public System {
 public:
  struct Description {
    const char* name;
    const char* settings;
    Layout layout;
    std::size_t header;     ///< bytes
    std::size_t quiet = 0;  ///< bytes before the first message; 0: the same
  };

  explicit MailboxSystem(const Description& description) : description_(description) {}

  [[nodiscard]] std::string name() const override { return description_.name; }
  [[nodiscard]] std::string settings() const override { return description_.settings; }
  [[nodiscard]] std::string question() const override { return "mailbox"; }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return false; }
  Outcome run(const Sample& sample) override;

  [[nodiscard]] const Description& description() const { return description_; }

 private:
  const Description& description_;
};

/// How many processes have mailboxes, all in those of both that talk, and the bytes of one mailbox.
struct Started {
  std::uint32_t processes = 2;
  std::size_t budget = 0;
};

/// Two neighbours on a ring of processes talk; the others are connected to both and sleep.
class StartedMailboxes final : public LinkSystem {
 public:
  StartedMailboxes(const MailboxSystem& system, const Started& started) : system_(system), started_(started) {}

  /// "mailbox-equal/48": the system's, and how many are started.
  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::uint32_t bystanders() const override { return started_.processes - 2; }
  [[nodiscard]] bool can(const Sample& sample) const override;
  std::unique_ptr<Link> open(const Place& place) override;
  void stand_by(const Place& place) override;

 private:
  [[nodiscard]] wherry::MailboxOptions options() const;

  const MailboxSystem& system_;
  Started started_;
};

/// Adds them all.
void add_systems(Registry& registry);

}  // namespace wherry::bench::mailbox
