// SPDX-License-Identifier: Apache-2.0
// The parts of a messenger that handle packets and losses.
#pragma once

namespace wherry::mpi {

class Initiator;
class LinkTable;
class MessageReceiver;
class MessageSender;
class Offers;
class Outbox;
class Target;
class Transfers;

struct Roles {
  LinkTable& links;
  Outbox& outbox;
  Offers& offers;
  Transfers& transfers;
  MessageReceiver& receiver;
  MessageSender& sender;
  Initiator& initiator;
  Target& target;
};

}  // namespace wherry::mpi
