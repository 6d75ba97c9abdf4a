// SPDX-License-Identifier: Apache-2.0
// Tagged messages of libfabric as the requests of a WindowedLink.
#pragma once

#include <rdma/fi_tagged.h>

#include <vector>

#include "bench/systems/libraries/ofi_endpoint.hpp"

namespace wherry::bench::ofi {

class Requests {
 public:
  Requests(const Place& place, std::size_t slots, const char* provider)
      : endpoint_(place, provider),
        sends_(slots),
        receives_(slots),
        acknowledged_(acknowledges(place.sample)),
        acknowledgements_(acknowledged_ && !place.receives() ? 2 : 0) {
    for (Request& request : acknowledgements_) {
      while (!expect_acknowledgement(request)) progress();
    }
  }

  bool start_send(std::size_t slot, std::span<const std::byte> message) {
    if (acknowledged_ && !may_send()) return false;
    fid_ep* endpoint = endpoint_.get();
    Request& request = sends_[slot];
    if (message.size() <= endpoint_.inject_size()) {
      if (!accepted(fi_tinject(endpoint, message.data(), message.size(), endpoint_.peer(), kTag), "fi_tinject")) {
        return false;
      }
    } else {
      request.busy = accepted(
          fi_tsend(endpoint, message.data(), message.size(), nullptr, endpoint_.peer(), kTag, &request), "fi_tsend");
      if (!request.busy) return false;
    }
    ++started_;
    return true;
  }

  bool sent(std::size_t slot) { return !sends_[slot].busy; }

  bool start_receive(std::size_t slot, std::span<std::byte> buffer) {
    if (acknowledged_ && !acknowledge()) return false;
    Request& request = receives_[slot];
    request.busy =
        accepted(fi_trecv(endpoint_.get(), buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, kTag, 0, &request),
                 "fi_trecv");
    if (request.busy) ++posted_;
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

  /// What was injected has no completion of its own; a message of another tag, never received, comes after it.
  bool start_flush() {
    flush_.busy =
        accepted(fi_tsend(endpoint_.get(), nullptr, 0, nullptr, endpoint_.peer(), kFlushTag, &flush_), "fi_tsend");
    return flush_.busy;
  }
  bool flushed() { return !flush_.busy; }

  /// From 2.0 on a sender that meets a full queue slows everything down (a tenth of the messages at 4 KB), so the
  /// receiver acknowledges each window, as in libfabric's own test. 1.17 is faster without.
  static bool acknowledges(const Sample& sample) {
    return sample.question == Question::stream && sample.senders == 1 && FI_MAJOR(fi_version()) >= 2;
  }

 private:
  static constexpr std::uint64_t kTag = 1;
  static constexpr std::uint64_t kFlushTag = 2;
  static constexpr std::uint64_t kAcknowledgementTag = 3;

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

  [[nodiscard]] std::uint64_t window() const { return sends_.size(); }

  bool expect_acknowledgement(Request& request) {
    request.busy = accepted(
        fi_trecv(endpoint_.get(), nullptr, 0, nullptr, FI_ADDR_UNSPEC, kAcknowledgementTag, 0, &request), "fi_trecv");
    return request.busy;
  }

  /// The sender may be two windows ahead of what was acknowledged.
  bool may_send() {
    if (started_ - confirmed_ < 2 * window()) return true;
    Request& oldest = acknowledgements_[confirmed_ / window() % acknowledgements_.size()];
    if (oldest.busy || !expect_acknowledgement(oldest)) return false;
    confirmed_ += window();
    return true;
  }

  /// Called before each receive is posted; by then all but the window of posted ones have been received.
  bool acknowledge() {
    const std::uint64_t received = posted_ < window() ? 0 : posted_ - window();
    if (received == confirmed_ || received % window() != 0) return true;
    const bool done =
        accepted(fi_tinject(endpoint_.get(), nullptr, 0, endpoint_.peer(), kAcknowledgementTag), "fi_tinject");
    if (done) confirmed_ = received;
    return done;
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
  bool acknowledged_;
  std::vector<Request> acknowledgements_;  ///< at the sender: the next one, and the one after it
  std::uint64_t started_ = 0;              ///< sends
  std::uint64_t posted_ = 0;               ///< receives
  std::uint64_t confirmed_ = 0;            ///< messages of which this side has got, or sent, the acknowledgement
};

}  // namespace wherry::bench::ofi
