// SPDX-License-Identifier: Apache-2.0
// fi_endpoint(3): a messenger, and the queues and counters that get its completions.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <array>
#include <memory>
#include <vector>

#include "adapters/mpi/messenger/messenger.hpp"
#include "completion_queue.hpp"
#include "counter.hpp"

namespace wherry::mpi {

class AddressVector;

class Endpoint final : public fid_ep, private Reporter {
 public:
  Endpoint(Domain& domain, const fi_info& info, void* context);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  static Endpoint& of(fid_t handle);
  static int open(Domain& domain, const fi_info* info, void* context, fid_ep** endpoint);

  int bind(fid_t other, std::uint64_t flags);
  int control(int command, void* argument);
  int get_option(int name, void* value, std::size_t* bytes);
  int set_option(int name, const void* value, std::size_t bytes);
  int name(void* to, std::size_t* bytes);
  ssize_t cancel(void* context);

  /// Flags for the calls that take none: those of the endpoint's fi_info, or of FI_SETOPSFLAG.
  [[nodiscard]] std::uint64_t send_flags() const { return send_flags_; }
  [[nodiscard]] std::uint64_t receive_flags() const { return receive_flags_; }
  /// Sets `request.to`.
  ssize_t send(fi_addr_t to, SendRequest& request, std::uint64_t flags);
  ssize_t receive(ReceiveRequest& request, std::uint64_t flags);
  ssize_t access(fi_addr_t to, RemoteRequest& request, std::uint64_t flags);

  // Called by the address vector, which holds the domain's lock.
  void inserted(fi_addr_t address, const Name& name);
  void removed(fi_addr_t address);

 private:
  int bind_queue(CompletionQueue& queue, std::uint64_t flags);
  int bind_counter(Counter& counter, std::uint64_t flags);
  void stop_counting(Counter& counter) noexcept;
  /// Of each kind of completions; null: none. A counter may count several kinds.
  [[nodiscard]] std::array<Counter*, 6> counters() const {
    return {send_counter_,  receive_counter_,     read_counter_,
            write_counter_, remote_read_counter_, remote_write_counter_};
  }
  int bind_addresses(AddressVector& addresses);
  int enable() const;
  ssize_t receive_special(const ReceiveRequest& request, std::uint64_t flags);

  void sent(const Completion& completion) override;
  void received(const Completion& completion) override;
  void accessed(const Completion& completion) override;
  [[nodiscard]] bool may_access(const RemoteRequest& request) const;
  [[nodiscard]] Counter* counter_of(const Completion& completion) const;
  static void report(const Completion& completion, CompletionQueue* queue, Counter* counter);

  Domain& domain_;
  const std::uint64_t caps_;
  const bool directed_;  ///< receives may name a source
  std::uint64_t send_flags_;
  std::uint64_t receive_flags_;
  CompletionQueue* send_queue_ = nullptr;
  CompletionQueue* receive_queue_ = nullptr;
  bool selects_sends_ = false;  ///< FI_SELECTIVE_COMPLETION for sends
  bool selects_receives_ = false;
  Counter* send_counter_ = nullptr;
  Counter* receive_counter_ = nullptr;
  Counter* read_counter_ = nullptr;
  Counter* write_counter_ = nullptr;
  Counter* remote_read_counter_ = nullptr;
  Counter* remote_write_counter_ = nullptr;
  AddressVector* addresses_ = nullptr;
  std::vector<Link*> links_;  ///< by address
  Messenger messenger_;
};

/// The tables of the calls that move data (endpoint_message.cc, _tagged.cc, _rma.cc, _atomic.cc).
extern fi_ops_msg message_calls;
extern fi_ops_tagged tagged_calls;
extern fi_ops_rma rma_calls;
extern fi_ops_atomic atomic_calls;
/// fi_query_atomic.
int query_atomic(fid_domain* domain, fi_datatype datatype, fi_op action, fi_atomic_attr* attributes,
                 std::uint64_t flags);

}  // namespace wherry::mpi
