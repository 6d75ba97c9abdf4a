// SPDX-License-Identifier: Apache-2.0
// The parts of a wherry::Mailbox. Each part uses only those before it.
//
// May include: base, arch, layout, fabric, stream.
#pragma once

#include <wherry/mailbox.hpp>

#include "mailbox/connector.hpp"
#include "mailbox/doorbells.hpp"
#include "mailbox/early_data.hpp"
#include "mailbox/pairs.hpp"
#include "mailbox/progress_engine.hpp"
#include "mailbox/receiver.hpp"
#include "mailbox/section_allocator.hpp"
#include "mailbox/sender.hpp"
#include "mailbox/waiter.hpp"
#include "mailbox/write_interest.hpp"

namespace wherry {

class Mailbox::Impl {
 public:
  explicit Impl(const MailboxOptions& options);

  mailbox::Pairs pairs;
  mailbox::EarlyData early;
  mailbox::WriteInterest write_interest;
  mailbox::Doorbells bells;
  mailbox::SectionAllocator sections;
  mailbox::Connector connector;
  mailbox::ProgressEngine engine;
  mailbox::Waiter waiter;
  mailbox::Sender sender;
  mailbox::Receiver receiver;
};

}  // namespace wherry
