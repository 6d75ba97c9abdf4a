// SPDX-License-Identifier: Apache-2.0
// UCX: its tag-matching interface, over what it chooses itself between processes of one machine.
#include <ucp/api/ucp.h>

#include <vector>

#include "bench/systems/libraries/windowed_link.hpp"

namespace wherry::bench {
namespace {

void check(ucs_status_t status, const char* what) { require(status == UCS_OK, what, ucs_status_string(status)); }

/// A context, its one worker, and the way to the other process.
class Worker {
 public:
  explicit Worker(const Place& place) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    if (waiting_of(place.sample) == Waiting::sleep) params.features |= UCP_FEATURE_WAKEUP;
    check(ucp_init(&params, nullptr, &context_), "ucp_init");
    ucp_worker_params_t worker_params{};
    worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
    check(ucp_worker_create(context_, &worker_params, &worker_), "ucp_worker_create");
    post_address(place);
    if (!place.receives()) {
      connect(place.exchange.read(0));
    } else if (place.sample.question != Question::stream) {
      connect(place.exchange.read(1));
    }
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }

  [[nodiscard]] ucp_worker_h get() const { return worker_; }
  [[nodiscard]] ucp_ep_h peer() const { return peer_; }

 private:
  void post_address(const Place& place) {
    ucp_address_t* address = nullptr;
    std::size_t length = 0;
    check(ucp_worker_get_address(worker_, &address, &length), "ucp_worker_get_address");
    place.exchange.post(place.rank, {reinterpret_cast<const char*>(address), length});
    ucp_worker_release_address(worker_, address);
  }

  void connect(const std::string& address) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    check(ucp_ep_create(worker_, &params, &peer_), "ucp_ep_create");
  }

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h peer_ = nullptr;
};

class UcxRequests {
 public:
  UcxRequests(const Place& place, std::size_t slots)
      : worker_(place), several_(place.sample.question == Question::stream), sends_(slots), receives_(slots) {}
  UcxRequests(const UcxRequests&) = delete;
  UcxRequests& operator=(const UcxRequests&) = delete;

  ~UcxRequests() {
    // Posted for messages that were never sent.
    for (const Receive& receive : receives_) {
      if (receive.request == nullptr) continue;
      ucp_request_cancel(worker_.get(), receive.request);
      ucp_request_free(receive.request);
    }
  }

  bool start_send(std::size_t slot, std::span<const std::byte> message) {
    ucp_request_param_t param{};
    if (several_) param.op_attr_mask = UCP_OP_ATTR_FLAG_MULTI_SEND;
    sends_[slot] = started(ucp_tag_send_nbx(worker_.peer(), message.data(), message.size(), kTag, &param), "send");
    return true;
  }

  bool sent(std::size_t slot) {
    if (sends_[slot] != nullptr && complete(sends_[slot], "send")) sends_[slot] = nullptr;
    return sends_[slot] == nullptr;
  }

  bool start_receive(std::size_t slot, std::span<std::byte> buffer) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_RECV_INFO;
    param.recv_info.tag_info = &receives_[slot].info;
    receives_[slot].request =
        started(ucp_tag_recv_nbx(worker_.get(), buffer.data(), buffer.size(), kTag, kWholeTag, &param), "receive");
    return true;
  }

  bool received(std::size_t slot) {
    Receive& receive = receives_[slot];
    if (receive.request == nullptr) return true;
    const ucs_status_t status = ucp_tag_recv_request_test(receive.request, &receive.info);
    if (status == UCS_INPROGRESS) return false;
    check(status, "receive");
    ucp_request_free(receive.request);
    receive.request = nullptr;
    return true;
  }

  [[nodiscard]] std::size_t length(std::size_t slot) const { return receives_[slot].info.length; }

  bool progress() { return ucp_worker_progress(worker_.get()) != 0; }

  void sleep() { check(ucp_worker_wait(worker_.get()), "ucp_worker_wait"); }

  bool start_flush() {
    const ucp_request_param_t param{};
    flush_ = started(ucp_worker_flush_nbx(worker_.get(), &param), "flush");
    return true;
  }

  bool flushed() {
    if (flush_ != nullptr && complete(flush_, "flush")) flush_ = nullptr;
    return flush_ == nullptr;
  }

 private:
  static constexpr ucp_tag_t kTag = 1;
  static constexpr ucp_tag_t kWholeTag = ~ucp_tag_t{0};

  struct Receive {
    void* request = nullptr;
    ucp_tag_recv_info_t info{};
  };

  /// The request, or nothing if it was complete at once.
  static void* started(ucs_status_ptr_t request, const char* what) {
    if (UCS_PTR_IS_ERR(request)) check(UCS_PTR_STATUS(request), what);
    return request;
  }

  static bool complete(void* request, const char* what) {
    const ucs_status_t status = ucp_request_check_status(request);
    if (status == UCS_INPROGRESS) return false;
    check(status, what);
    ucp_request_free(request);
    return true;
  }

  Worker worker_;
  bool several_;
  std::vector<void*> sends_;
  std::vector<Receive> receives_;
  void* flush_ = nullptr;
};

class Ucx final : public LinkSystem {
 public:
  [[nodiscard]] std::string name() const override { return "ucx"; }
  [[nodiscard]] std::string version() const override {
    unsigned major = 0, minor = 0, patch = 0;
    ucp_get_version(&major, &minor, &patch);
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  }
  [[nodiscard]] std::string settings() const override {
    return "ucp_tag_send_nbx/ucp_tag_recv_nbx, single-threaded worker, window 64 up to 64 KB and 4 above (latency 1), "
           "default transports, looks without sleeping, gives way when there are more processes than cores, "
           "from sleep: ucp_worker_wait";
  }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return true; }
  std::unique_ptr<Link> open(const Place& place) override { return std::make_unique<WindowedLink<UcxRequests>>(place); }
};

}  // namespace
}  // namespace wherry::bench

extern "C" wherry::bench::Systems* wherry_bench_systems() {
  static wherry::bench::Systems systems;
  systems.push_back(std::make_unique<wherry::bench::Ucx>());
  return &systems;
}
