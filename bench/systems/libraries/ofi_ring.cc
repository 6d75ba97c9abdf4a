// SPDX-License-Identifier: Apache-2.0
// libfabric as a network's lower bound: fi_writedata into a ring of the receiver's, provider tcp, connected endpoints
// (FI_EP_MSG). Each message is copied into registered memory before, and out of the ring after.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "bench/harness/message_buffer.hpp"
#include "bench/systems/libraries/ofi_endpoint.hpp"

namespace wherry::bench {
namespace {

using ofi::check;
using ofi::Info;
using ofi::Owned;

constexpr int kConnectMs = 20'000;
/// Without a limit 1.17 now and then misses what wakes it.
constexpr int kSleepMs = 100;

/// Where the other process writes.
struct Ring {
  std::uint64_t address;
  std::uint64_t key;
};

Info hints() {
  Info hints(fi_allocinfo());
  hints->caps = FI_MSG | FI_RMA;
  hints->ep_attr->type = FI_EP_MSG;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->fabric_attr->prov_name = strdup("tcp");
  hints->addr_format = FI_SOCKADDR_IN;
  return hints;
}

class RingLink final : public Link {
 public:
  explicit RingLink(const Place& place)
      : size_(place.sample.size),
        slots_(std::clamp<std::size_t>((std::size_t{4} << 20) / size_, 8, 1024)),
        spins_(place.sample.question == Question::latency),
        out_(size_),
        in_(size_),
        staging_(size_, slots_),
        ring_(size_, slots_),
        credits_(slots_) {
    place.receives() ? accept(place) : connect(place);
  }

  std::span<std::byte> prepare() override { return out_.span(); }

  void send() override {
    // A credit for the slot says that its last message has arrived, so that its copy here is free, too.
    while (credits_ == 0) progress();
    const auto slot = staging_.at(sent_);
    std::memcpy(slot.data(), out_.span().data(), size_);
    const std::uint64_t to = theirs_.address + sent_ % slots_ * stride();
    for (;;) {
      const ssize_t status = fi_writedata(endpoint_.get(), slot.data(), size_, fi_mr_desc(staging_region_.get()),
                                          kMessage, 0, to, theirs_.key, nullptr);
      if (status != -FI_EAGAIN) {
        check(status, "fi_writedata");
        break;
      }
      progress();
    }
    ++sent_;
    --credits_;
  }

  void finish() override {
    while (completed_ < sent_ + given_) progress();
  }

  std::span<const std::byte> receive() override {
    while (arrived_ == received_) progress();
    std::memcpy(in_.span().data(), ring_.at(received_).data(), size_);
    ++received_;
    if (received_ % (slots_ / 4) == 0) give_credit(slots_ / 4);
    return in_.span();
  }

 private:
  static constexpr std::uint64_t kMessage = 0;  // else as many credits

  [[nodiscard]] std::size_t stride() const { return static_cast<std::size_t>(ring_.at(1).data() - ring_.at(0).data()); }

  void accept(const Place& place) {
    const Info wanted = hints();
    fi_info* found = nullptr;
    check(fi_getinfo(FI_VERSION(1, 17), place.host_or_loopback().c_str(), nullptr, FI_SOURCE, wanted.get(), &found),
          "fi_getinfo");
    const Info info(found);
    open_events(*info);
    Owned<fid_pep> listener;
    check(fi_passive_ep(fabric_.get(), info.get(), listener.fill(), nullptr), "fi_passive_ep");
    check(fi_pep_bind(listener.get(), &events_->fid, 0), "fi_pep_bind");
    check(fi_listen(listener.get()), "fi_listen");
    std::array<char, 64> name{};
    std::size_t length = name.size();
    check(fi_getname(&listener->fid, name.data(), &length), "fi_getname");
    place.exchange.post(0, {name.data(), length});
    const Info caller = await(FI_CONNREQ);
    open_endpoint(*caller);
    const Ring ours = own_ring(*caller);
    check(fi_accept(endpoint_.get(), &ours, sizeof ours), "fi_accept");
    await(FI_CONNECTED);
  }

  void connect(const Place& place) {
    const std::string address = place.exchange.read(0);
    sockaddr_in where{};
    std::memcpy(&where, address.data(), std::min(address.size(), sizeof where));
    std::array<char, INET_ADDRSTRLEN> host{};
    ::inet_ntop(AF_INET, &where.sin_addr, host.data(), host.size());
    const Info wanted = hints();
    fi_info* found = nullptr;
    check(fi_getinfo(FI_VERSION(1, 17), host.data(), std::to_string(ntohs(where.sin_port)).c_str(), 0, wanted.get(),
                     &found),
          "fi_getinfo");
    const Info info(found);
    open_events(*info);
    open_endpoint(*info);
    const Ring ours = own_ring(*info);
    check(fi_connect(endpoint_.get(), info->dest_addr, &ours, sizeof ours), "fi_connect");
    await(FI_CONNECTED);
  }

  void open_events(const fi_info& info) {
    check(fi_fabric(info.fabric_attr, fabric_.fill(), nullptr), "fi_fabric");
    fi_eq_attr attributes{};
    attributes.wait_obj = FI_WAIT_UNSPEC;
    check(fi_eq_open(fabric_.get(), &attributes, events_.fill(), nullptr), "fi_eq_open");
  }

  void open_endpoint(fi_info& info) {
    check(fi_domain(fabric_.get(), &info, domain_.fill(), nullptr), "fi_domain");
    fi_cq_attr completions{};
    completions.format = FI_CQ_FORMAT_DATA;
    completions.wait_obj = FI_WAIT_UNSPEC;
    completions.size = 2 * slots_ + 64;
    check(fi_cq_open(domain_.get(), &completions, queue_.fill(), nullptr), "fi_cq_open");
    check(fi_endpoint(domain_.get(), &info, endpoint_.fill(), nullptr), "fi_endpoint");
    check(fi_ep_bind(endpoint_.get(), &events_->fid, 0), "fi_ep_bind");
    check(fi_ep_bind(endpoint_.get(), &queue_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_enable(endpoint_.get()), "fi_enable");
    check(fi_mr_reg(domain_.get(), staging_.at(0).data(), stride() * slots_, FI_WRITE, 0, 1, 0, staging_region_.fill(),
                    nullptr),
          "fi_mr_reg");
    check(fi_mr_reg(domain_.get(), ring_.at(0).data(), stride() * slots_, FI_REMOTE_WRITE, 0, 2, 0, ring_region_.fill(),
                    nullptr),
          "fi_mr_reg");
  }

  [[nodiscard]] Ring own_ring(const fi_info& info) const {
    const bool by_address = (info.domain_attr->mr_mode & (FI_MR_VIRT_ADDR | FI_MR_BASIC)) != 0;
    return {by_address ? reinterpret_cast<std::uint64_t>(ring_.at(0).data()) : 0, fi_mr_key(ring_region_.get())};
  }

  /// The other's ring comes with the event, whichever it is.
  Info await(std::uint32_t wanted) {
    std::array<std::byte, sizeof(fi_eq_cm_entry) + sizeof(Ring)> buffer{};
    std::uint32_t event = 0;
    const ssize_t got = fi_eq_sread(events_.get(), &event, buffer.data(), buffer.size(), kConnectMs, 0);
    check(got, "fi_eq_sread");
    if (event != wanted) throw std::runtime_error("the other endpoint did not connect");
    auto* const entry = reinterpret_cast<fi_eq_cm_entry*>(buffer.data());
    if (static_cast<std::size_t>(got) == buffer.size()) std::memcpy(&theirs_, entry->data, sizeof theirs_);
    return Info(event == FI_CONNREQ ? entry->info : nullptr);
  }

  void give_credit(std::size_t credits) {
    for (;;) {
      const ssize_t status =
          fi_writedata(endpoint_.get(), nullptr, 0, nullptr, credits, 0, theirs_.address, theirs_.key, nullptr);
      if (status != -FI_EAGAIN) {
        check(status, "fi_writedata of no bytes");
        ++given_;
        return;
      }
      progress();
    }
  }

  void progress() {
    std::array<fi_cq_data_entry, 16> entries{};
    ssize_t count = fi_cq_read(queue_.get(), entries.data(), entries.size());
    if (count == -FI_EAGAIN && !spins_) count = fi_cq_sread(queue_.get(), entries.data(), 1, nullptr, kSleepMs);
    if (count == -FI_EAGAIN || count == -FI_EINTR) return;
    check(count, "fi_cq_read");
    for (const fi_cq_data_entry& entry : std::span(entries).first(static_cast<std::size_t>(count))) {
      if ((entry.flags & FI_REMOTE_CQ_DATA) == 0) {
        ++completed_;
      } else if (entry.data == kMessage) {
        ++arrived_;
      } else {
        credits_ += entry.data;
      }
    }
  }

  const std::size_t size_;
  const std::size_t slots_;
  const bool spins_;
  MessageBuffer out_;
  MessageBuffer in_;
  PrivateBuffers staging_;
  PrivateBuffers ring_;
  Owned<fid_fabric> fabric_;
  Owned<fid_eq> events_;
  Owned<fid_domain> domain_;
  Owned<fid_cq> queue_;
  Owned<fid_mr> staging_region_;
  Owned<fid_mr> ring_region_;
  Owned<fid_ep> endpoint_;
  Ring theirs_{};
  std::uint64_t credits_;  ///< free slots of the other's ring
  std::uint64_t sent_ = 0;
  std::uint64_t given_ = 0;      ///< messages that carry credits
  std::uint64_t completed_ = 0;  ///< of both kinds
  std::uint64_t arrived_ = 0;
  std::uint64_t received_ = 0;
};

class OfiRing final : public LinkSystem {
 public:
  explicit OfiRing(int /*kind*/) {}
  [[nodiscard]] std::string name() const override { return "ofi-ring"; }
  [[nodiscard]] std::string version() const override {
    return std::to_string(FI_MAJOR(fi_version())) + "." + std::to_string(FI_MINOR(fi_version()));
  }
  [[nodiscard]] std::string settings() const override {
    return "fi_writedata into a ring of 4 MiB, 8 to 1024 messages, copied in and out; fi_cq_sread, latency fi_cq_read";
  }
  [[nodiscard]] bool can(const Sample& sample) const override { return sample.senders == 1 && sample.idle == 0; }
  [[nodiscard]] std::string question() const override { return "net"; }
  std::unique_ptr<Link> open(const Place& place) override {
    ::setenv("FI_PROVIDER", "tcp", 1);
    return std::make_unique<RingLink>(place);
  }
};

}  // namespace
}  // namespace wherry::bench

extern "C" wherry::bench::Systems* wherry_bench_systems() { return wherry::bench::made_of<wherry::bench::OfiRing>(0); }
