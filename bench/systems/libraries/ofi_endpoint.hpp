// SPDX-License-Identifier: Apache-2.0
// An endpoint of libfabric: from the provider's offer to an address that the other process can be reached at.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include "bench/systems/libraries/windowed_link.hpp"

namespace wherry::bench::ofi {

inline void check(ssize_t status, const char* what) {
  require(status >= 0, what, fi_strerror(static_cast<int>(status < 0 ? -status : 0)));
}

/// What libfabric made, closed when it goes.
template <class Object>
class Owned {
 public:
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (object_ != nullptr) fi_close(&object_->fid);
  }
  Object** fill() { return &object_; }
  [[nodiscard]] Object* get() const { return object_; }
  Object* operator->() const { return object_; }

 private:
  Object* object_ = nullptr;
};

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// What the provider offers, nothing if it is not there.
inline Info offered_by(const char* provider) {
  const Info hints(fi_allocinfo());
  hints->caps = FI_TAGGED;
  hints->mode = FI_CONTEXT;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->fabric_attr->prov_name = strdup(provider);
  if (std::string_view(provider) == "tcp") hints->addr_format = FI_SOCKADDR_IN;
  fi_info* found = nullptr;
  const bool tcp = std::string_view(provider) == "tcp";
  const int status =
      fi_getinfo(FI_VERSION(1, 17), tcp ? "127.0.0.1" : nullptr, nullptr, tcp ? FI_SOURCE : 0, hints.get(), &found);
  return Info(status == 0 ? found : nullptr);
}

/// An endpoint with its queue of completions, and the way to the other process.
class Endpoint {
 public:
  Endpoint(const Place& place, const char* provider) : info_(offered_by(provider)) {
    if (!info_) throw std::runtime_error(std::string("libfabric has no provider ") + provider);
    check(fi_fabric(info_->fabric_attr, fabric_.fill(), nullptr), "fi_fabric");
    check(fi_domain(fabric_.get(), info_.get(), domain_.fill(), nullptr), "fi_domain");
    open_queues(waiting_of(place.sample) == Waiting::sleep);
    check(fi_endpoint(domain_.get(), info_.get(), endpoint_.fill(), nullptr), "fi_endpoint");
    check(fi_ep_bind(endpoint_.get(), &addresses_->fid, 0), "fi_ep_bind");
    check(fi_ep_bind(endpoint_.get(), &queue_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_enable(endpoint_.get()), "fi_enable");
    post_address(place);
    if (!place.receives()) {
      connect(place.exchange.read(0));
    } else if (place.sample.senders == 1) {
      connect(place.exchange.read(1));
    }
  }

  [[nodiscard]] fid_ep* get() const { return endpoint_.get(); }
  [[nodiscard]] fid_cq* queue() const { return queue_.get(); }
  [[nodiscard]] fi_addr_t peer() const { return peer_; }
  /// Messages up to this size may be copied away by the call that sends them.
  [[nodiscard]] std::size_t inject_size() const { return info_->tx_attr->inject_size; }

 private:
  void open_queues(bool sleeps) {
    fi_av_attr addresses{};
    addresses.type = FI_AV_UNSPEC;
    check(fi_av_open(domain_.get(), &addresses, addresses_.fill(), nullptr), "fi_av_open");
    fi_cq_attr completions{};
    completions.format = FI_CQ_FORMAT_MSG;
    completions.wait_obj = sleeps ? FI_WAIT_UNSPEC : FI_WAIT_NONE;
    check(fi_cq_open(domain_.get(), &completions, queue_.fill(), nullptr), "fi_cq_open");
  }

  void post_address(const Place& place) {
    std::array<char, 512> name{};
    std::size_t length = name.size();
    check(fi_getname(&endpoint_->fid, name.data(), &length), "fi_getname");
    place.exchange.post(place.rank, {name.data(), length});
  }

  void connect(const std::string& name) {
    const int inserted = fi_av_insert(addresses_.get(), name.data(), 1, &peer_, 0, nullptr);
    if (inserted != 1) throw std::runtime_error("fi_av_insert: the other's address was refused");
  }

  Info info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> addresses_;
  Owned<fid_cq> queue_;
  Owned<fid_ep> endpoint_;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
};

}  // namespace wherry::bench::ofi
