// SPDX-License-Identifier: Apache-2.0
// The other endpoints: links by name, and inflows by the mailbox's peer number. The hello, which is the first packet of
// each side, joins the two.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <wherry/mailbox.hpp>

#include "link.hpp"
#include "name.hpp"
#include "outbox.hpp"

namespace wherry::mpi {

class LinkTable {
 public:
  /// Starts to listen. Throws Error.
  /// @param processors  number of processors that the linked endpoints may run on
  LinkTable(Mailbox& mailbox, Outbox& outbox, std::size_t processors);

  [[nodiscard]] const Name& name() const { return name_; }
  /// The link to the endpoint of this name, connected or not.
  Link& link_to(const Name& name);
  /// Whether the application has named more endpoints than there are processors, this endpoint included.
  [[nodiscard]] bool is_oversubscribed() const { return links_.size() > processors_; }
  /// Whether there are at least two endpoints per processor.
  [[nodiscard]] bool is_crowded() const { return links_.size() >= 2 * processors_; }

  /// Connects if necessary. Returns 0 or a negative FI_E value.
  int connect(Link& link) {
    if (link.peer != Mailbox::kNoPeer && link.error == 0) [[likely]]
      return 0;
    return connect_first(link);
  }
  void on_hello(Inflow& inflow);

  Inflow& inflow_of(Mailbox::Peer peer) {
    if (peer < inflows_.size() && inflows_[peer] != nullptr) [[likely]]
      return *inflows_[peer];
    return new_inflow(peer);
  }
  /// Returns null if nothing has come from that peer.
  std::unique_ptr<Inflow> remove_inflow(Mailbox::Peer peer);

  template <class Visit>
  void for_each(Visit&& visit) {
    for (auto& [name, link] : links_) visit(*link);
  }
  /// Visits the inflows whose payload is for `subject` of `sink`.
  void for_each_inflow(const PayloadSink& sink, std::uint64_t subject, const std::function<void(Inflow&)>& visit);

 private:
  int connect_first(Link& link);
  void send_hello(Link& link);
  Inflow& new_inflow(Mailbox::Peer peer);

  Mailbox& mailbox_;
  Outbox& outbox_;
  const std::size_t processors_;
  Name name_;
  std::map<std::string, std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Inflow>> inflows_;  ///< by the mailbox's number
};

}  // namespace wherry::mpi
