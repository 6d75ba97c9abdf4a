// SPDX-License-Identifier: Apache-2.0
// libfabric: tagged messages of reliable datagram endpoints, providers shm and tcp.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "bench/peers/windowed_link.hpp"

namespace wherry::bench {
namespace {

void check(ssize_t status, const char* what) {
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
Info offered_by(const char* provider) {
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
      connect(place.board.read(0));
    } else if (place.sample.question != Question::stream) {
      connect(place.board.read(1));
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
    place.board.post(place.rank, {name.data(), length});
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

class OfiRequests {
 public:
  OfiRequests(const Place& place, std::size_t slots, const char* provider)
      : endpoint_(place, provider), sends_(slots), receives_(slots) {}

  bool start_send(std::size_t slot, std::span<const std::byte> message) {
    fid_ep* endpoint = endpoint_.get();
    if (message.size() <= endpoint_.inject_size()) {
      return accepted(fi_tinject(endpoint, message.data(), message.size(), endpoint_.peer(), kTag), "fi_tinject");
    }
    Request& request = sends_[slot];
    request.busy = accepted(
        fi_tsend(endpoint, message.data(), message.size(), nullptr, endpoint_.peer(), kTag, &request), "fi_tsend");
    return request.busy;
  }

  bool sent(std::size_t slot) { return !sends_[slot].busy; }

  bool start_receive(std::size_t slot, std::span<std::byte> buffer) {
    Request& request = receives_[slot];
    request.busy =
        accepted(fi_trecv(endpoint_.get(), buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, kTag, 0, &request),
                 "fi_trecv");
    return request.busy;
  }

  bool received(std::size_t slot) { return !receives_[slot].busy; }
  [[nodiscard]] std::size_t length(std::size_t slot) const { return receives_[slot].length; }

  bool progress() {
    std::array<fi_cq_msg_entry, 16> entries;
    const ssize_t count = fi_cq_read(endpoint_.queue(), entries.data(), entries.size());
    if (count == -FI_EAGAIN) return false;
    note(count, entries.data());
    return true;
  }

  void sleep() {
    fi_cq_msg_entry entry{};
    constexpr int kMilliseconds = 100;  // Without a limit 1.17 hangs: now and then it misses what wakes it.
    const ssize_t count = fi_cq_sread(endpoint_.queue(), &entry, 1, nullptr, kMilliseconds);
    if (count != -FI_EAGAIN && count != -FI_EINTR) note(count, &entry);
  }

  /// What was injected has no completion of its own; a message of another tag, which nobody receives, comes after it.
  bool start_flush() {
    flush_.busy =
        accepted(fi_tsend(endpoint_.get(), nullptr, 0, nullptr, endpoint_.peer(), kFlushTag, &flush_), "fi_tsend");
    return flush_.busy;
  }
  bool flushed() { return !flush_.busy; }

 private:
  static constexpr std::uint64_t kTag = 1;
  static constexpr std::uint64_t kFlushTag = 2;

  /// Its address is the request's context, of which the provider keeps the first part for itself.
  struct Request {
    fi_context2 context{};
    bool busy = false;
    std::size_t length = 0;
  };

  /// What the provider has no room for now is tried again when something has completed.
  static bool accepted(ssize_t status, const char* what) {
    if (status == -FI_EAGAIN) return false;
    check(status, what);
    return true;
  }

  void note(ssize_t count, const fi_cq_msg_entry* entries) {
    if (count == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      fi_cq_readerr(endpoint_.queue(), &error, 0);
      check(-error.err, "completion");
    }
    check(count, "fi_cq_read");
    for (ssize_t i = 0; i < count; ++i) {
      auto* request = static_cast<Request*>(entries[i].op_context);
      request->busy = false;
      request->length = entries[i].len;
    }
  }

  Endpoint endpoint_;
  std::vector<Request> sends_;
  std::vector<Request> receives_;
  Request flush_;
};

class Ofi final : public LinkSystem {
 public:
  explicit Ofi(const char* provider) : provider_(provider) {}
  [[nodiscard]] std::string name() const override { return std::string("ofi-") + provider_; }
  [[nodiscard]] std::string version() const override {
    return std::to_string(FI_MAJOR(fi_version())) + "." + std::to_string(FI_MINOR(fi_version()));
  }
  [[nodiscard]] std::string settings() const override {
    return "fi_tsend (fi_tinject up to the provider's size) and fi_trecv, window 64 up to 64 KB and 4 above "
           "(latency 1), looks without sleeping, gives way when there are more processes than cores, from sleep: "
           "fi_cq_sread";
  }
  [[nodiscard]] bool can(const Sample& sample) const override {
    // The shared-memory provider has no way to sleep; the other one buffers what nobody waits for yet, 100 MB a sender.
    if (std::string_view(provider_) == "shm") return sample.question != Question::asleep;
    constexpr std::uint32_t kMostSenders = 16;
    return sample.senders <= kMostSenders;
  }
  std::unique_ptr<Link> open(const Place& place) override {
    // Looking for network cards would take longer than the sample.
    ::setenv("FI_PROVIDER", provider_, 1);
    return std::make_unique<WindowedLink<OfiRequests>>(place, provider_);
  }

 private:
  const char* provider_;
};

}  // namespace
}  // namespace wherry::bench

extern "C" wherry::bench::Systems* wherry_bench_systems() {
  static wherry::bench::Systems systems;
  systems.push_back(std::make_unique<wherry::bench::Ofi>("shm"));
  systems.push_back(std::make_unique<wherry::bench::Ofi>("tcp"));
  return &systems;
}
