// SPDX-License-Identifier: Apache-2.0
#include "link_table.hpp"

#include <rdma/fi_errno.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include <wherry/error.hpp>

#include "base/log.hpp"

namespace wherry::mpi {

LinkTable::LinkTable(Mailbox& mailbox, Outbox& outbox, std::size_t processors)
    : mailbox_(mailbox), outbox_(outbox), processors_(processors) {
  mailbox_.listen(Address::parse("wherry+shm://*:*"));
  name_ = Name::of(mailbox_.local());
  link_to(name_).self = true;
}

Link& LinkTable::link_to(const Name& name) {
  std::unique_ptr<Link>& link = links_[name.text()];
  if (link == nullptr) {
    link = std::make_unique<Link>();
    link->name = name;
  }
  return *link;
}

int LinkTable::connect_first(Link& link) {
  if (link.error != 0) return -link.error;
  if (link.self) return 0;
  if (!link.name.is_on_this_host()) return -FI_EHOSTUNREACH;
  try {
    // No retry: a rank gets this name from the process that listens there. If nothing listens there any more, that rank
    // is lost.
    const Mailbox::Peer peer = mailbox_.connect(link.name.address(), std::chrono::nanoseconds(0));
    for_each([&](const Link& other) {
      if (other.peer == peer) {
        throw Error(ECONNREFUSED, "connect", link.name.text(),
                    "another endpoint has its port now, " + other.name.text() + "; check whether that process ended");
      }
    });
    link.peer = peer;
    send_hello(link);
    return 0;
  } catch (const Error& error) {
    log::write(log::Level::error, error.what());
    link.error = error.code().value();
    return -link.error;
  }
}

void LinkTable::send_hello(Link& link) {
  Wire wire;
  wire.head.operation = Operation::hello;
  wire.head.data = link.name.incarnation;
  const auto own = name_.bytes();
  wire.append(own.data(), own.size());
  (void)outbox_.send(link, wire);
}

void LinkTable::on_hello(Inflow& inflow) {
  const auto name = Name::parse_bytes(inflow.head.data() + sizeof(PacketHead));
  if (!name || inflow.packet.data != name_.incarnation || inflow.link != nullptr || *name == name_) {
    inflow.error = FI_ECONNREFUSED;
    return;
  }
  Link& link = link_to(*name);
  if (link.error != 0) {  // a name is never reused, and its endpoint is lost
    inflow.error = link.error;
    return;
  }
  // An endpoint has one connection, even if both sides connect at once: the mailbox keeps its peer number.
  if (link.peer != Mailbox::kNoPeer && link.peer != inflow.peer) {
    inflow.error = FI_ECONNREFUSED;
    return;
  }
  inflow.link = &link;
  if (link.peer != Mailbox::kNoPeer) return;
  link.peer = inflow.peer;
  send_hello(link);
}

Inflow& LinkTable::new_inflow(Mailbox::Peer peer) {
  if (peer >= inflows_.size()) inflows_.resize(peer + 1);
  inflows_[peer] = std::make_unique<Inflow>();
  inflows_[peer]->peer = peer;
  return *inflows_[peer];
}

std::unique_ptr<Inflow> LinkTable::remove_inflow(Mailbox::Peer peer) {
  return peer < inflows_.size() ? std::move(inflows_[peer]) : nullptr;
}

void LinkTable::for_each_inflow(const PayloadSink& sink, std::uint64_t subject,
                                const std::function<void(Inflow&)>& visit) {
  for (const auto& inflow : inflows_) {
    if (inflow != nullptr && inflow->sink == &sink && inflow->subject == subject) visit(*inflow);
  }
}

}  // namespace wherry::mpi
