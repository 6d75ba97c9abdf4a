// SPDX-License-Identifier: Apache-2.0
#include "protocols.hpp"

#include <array>

#include "layout/mailbox_page.hpp"

#include "initiator.hpp"
#include "link_table.hpp"
#include "message_receiver.hpp"
#include "message_sender.hpp"
#include "offers.hpp"
#include "remote.hpp"
#include "target.hpp"
#include "transfers.hpp"

namespace wherry::mpi {
namespace {

using Table = std::array<Protocol, static_cast<std::size_t>(Operation::count)>;

constexpr Protocol& row(Table& table, Operation operation) { return table[static_cast<std::size_t>(operation)]; }

constexpr void add_messages(Table& table) {
  row(table, Operation::short_eager) = {
      .begin = [](const Roles& roles, Inflow& inflow) { roles.receiver.on_short_eager(inflow); }};
  row(table, Operation::eager) = {.begin = [](const Roles& roles, Inflow& inflow) { roles.receiver.on_eager(inflow); },
                                  .tail = Tail::payload};
  row(table, Operation::announce) = {
      .begin = [](const Roles& roles, Inflow& inflow) { roles.receiver.on_announce(inflow); }, .has_pieces = true};
  row(table, Operation::want) = {.begin = [](const Roles& roles, Inflow& inflow) { roles.offers.on_want(inflow); }};
  row(table, Operation::stream) = {
      .begin = [](const Roles& roles, Inflow& inflow) { roles.transfers.on_stream(inflow); }, .tail = Tail::payload};
  row(table, Operation::done) = {.begin = [](const Roles& roles, Inflow& inflow) { roles.offers.on_done(inflow); }};
  row(table, Operation::stop_eager) = {
      .begin = [](const Roles& roles, Inflow& inflow) { roles.sender.on_stop_eager(*inflow.link); }};
  row(table, Operation::resume_eager) = {
      .begin = [](const Roles&, Inflow& inflow) { MessageSender::on_resume_eager(*inflow.link); }};
}

constexpr void add_one_sided(Table& table) {
  row(table, Operation::write) = {.begin = [](const Roles& roles, Inflow& inflow) { roles.target.on_write(inflow); },
                                  .tail = Tail::payload,
                                  .has_ranges = true};
  row(table, Operation::announce_write) = {
      .begin = [](const Roles& roles, Inflow& inflow) { roles.target.on_announce_write(inflow); },
      .has_pieces = true,
      .has_ranges = true};
  row(table, Operation::read) = {.begin = [](const Roles& roles, Inflow& inflow) { roles.target.on_read(inflow); },
                                 .has_ranges = true};
  row(table, Operation::atomic) = {.begin = [](const Roles& roles, Inflow& inflow) { roles.target.on_atomic(inflow); },
                                   .tail = Tail::operands,
                                   .has_ranges = true};
  row(table,
      Operation::accessed) = {.begin = [](const Roles& roles, Inflow& inflow) { roles.initiator.on_accessed(inflow); }};
  row(table, Operation::reply) = {.begin = [](const Roles& roles, Inflow& inflow) { roles.initiator.on_reply(inflow); },
                                  .tail = Tail::payload};
  row(table, Operation::grant) = {.begin = [](const Roles& roles, Inflow& inflow) { roles.initiator.on_grant(inflow); },
                                  .has_pieces = true};
}

constexpr Table make_table() {
  Table table{};
  row(table, Operation::hello) = {.begin = [](const Roles& roles, Inflow& inflow) { roles.links.on_hello(inflow); },
                                  .has_name = true};
  add_messages(table);
  add_one_sided(table);
  return table;
}

constexpr Table kProtocols = make_table();

std::uint64_t tail_bytes(const Protocol& protocol, const PacketHead& packet) {
  if (protocol.tail == Tail::none) return 0;
  return protocol.tail == Tail::operands ? operand_bytes(packet) : packet.bytes;
}

}  // namespace

const Protocol& protocol_of(Operation operation) {
  const auto index = static_cast<std::size_t>(operation);
  return kProtocols[index < kProtocols.size() ? index : 0];
}

std::size_t table_bytes(const Protocol& protocol, const PacketHead& packet) {
  if (protocol.has_name) return kNameBytes;
  return (protocol.has_pieces ? packet.pieces * sizeof(RemotePiece) : 0) +
         (protocol.has_ranges ? packet.ranges * sizeof(RemoteRange) : 0);
}

bool is_consistent(const Protocol& protocol, const PacketHead& packet, std::uint64_t packet_bytes) {
  if (packet.pieces > kMostRemotePieces || packet.ranges > kMostRemoteRanges) return false;
  if (packet.bytes > layout::kMailboxLongest) return false;
  if (protocol.has_ranges && !protocol.has_pieces && packet.pieces != 0) return false;
  if (packet.operation == Operation::atomic && !is_valid_atomic(packet)) return false;
  return packet_bytes - sizeof(PacketHead) - table_bytes(protocol, packet) == tail_bytes(protocol, packet);
}

}  // namespace wherry::mpi
