// SPDX-License-Identifier: Apache-2.0
// The common part of all calls that move data: flags, addresses, and where completions go.
#include <mutex>

#include "endpoint.hpp"
#include "info.hpp"
#include "objects.hpp"

namespace wherry::mpi {
namespace {

constexpr std::uint64_t kUnserved = FI_FENCE | FI_TRIGGER | FI_MULTICAST;
constexpr std::uint64_t kWhenDelivered = FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;

}  // namespace

ssize_t Endpoint::send(fi_addr_t to, SendRequest& request, std::uint64_t flags) {
  if ((flags & kUnserved) != 0) return -FI_EBADFLAGS;
  const std::lock_guard guard(domain_.lock());
  request.to = to < links_.size() ? links_[to] : nullptr;
  if (request.to == nullptr) return -FI_EADDRNOTAVAIL;
  request.inject = (flags & FI_INJECT) != 0;
  if (request.inject && request.buffers.bytes() > kMostInjected) return -FI_EINVAL;
  request.delivery = (flags & kWhenDelivered) != 0;
  request.transmit = (flags & FI_TRANSMIT_COMPLETE) != 0;
  request.wanted = request.wanted && (!selects_sends_ || (flags & FI_COMPLETION) != 0);
  request.reported = request.wanted || send_counter_ != nullptr;
  if (send_queue_ != nullptr && send_queue_->is_full()) return -FI_EAGAIN;
  const int status = guarded([&] { return messenger_.send(request); });
  // -FI_EAGAIN is no activity: a program that retries is waiting.
  if (status != -FI_EAGAIN) domain_.lock().note_activity();
  return status;
}

ssize_t Endpoint::receive(ReceiveRequest& request, std::uint64_t flags) {
  const std::lock_guard guard(domain_.lock());
  domain_.lock().note_activity();
  if (!directed_) request.source = kAnySource;
  if (request.source != kAnySource) {
    if (request.source >= links_.size() || links_[request.source] == nullptr) return -FI_EADDRNOTAVAIL;
    request.source = links_[request.source]->address;  // one endpoint may have several addresses
  }
  request.wanted = !selects_receives_ || (flags & FI_COMPLETION) != 0;
  request.several = (flags & FI_MULTI_RECV) != 0;
  return guarded([&] {
    if ((flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) != 0) return static_cast<int>(receive_special(request, flags));
    if (request.several && (request.tagged || request.buffers.ranges().size() != 1)) return -FI_EINVAL;
    return messenger_.receive(request);
  });
}

ssize_t Endpoint::receive_special(const ReceiveRequest& request, std::uint64_t flags) {
  if (!request.tagged || request.several) return -FI_EBADFLAGS;
  const bool claims = (flags & FI_CLAIM) != 0;
  const bool discards = (flags & FI_DISCARD) != 0;
  if ((flags & FI_PEEK) != 0) return claims && discards ? -FI_EBADFLAGS : messenger_.peek(request, claims, discards);
  if (!claims) return -FI_EBADFLAGS;
  return discards ? messenger_.discard_claimed(request) : messenger_.receive_claimed(request);
}

void Endpoint::report(const Completion& completion, CompletionQueue* queue, Counter* counter) {
  if (queue != nullptr && (completion.wanted || completion.error != 0)) queue->write(completion);
  if (counter != nullptr) counter->count(completion);
}

bool Endpoint::may_access(const RemoteRequest& request) const {
  const std::uint64_t needed = request.flags();
  if ((caps_ & needed & (FI_RMA | FI_ATOMIC)) == 0) return false;
  return (caps_ & kDirections) == 0 || (caps_ & needed & kDirections) != 0;
}

ssize_t Endpoint::access(fi_addr_t to, RemoteRequest& request, std::uint64_t flags) {
  if (!may_access(request)) return -FI_EOPNOTSUPP;
  if ((flags & kUnserved) != 0) return -FI_EBADFLAGS;
  if (!request.fits()) return -FI_EINVAL;
  const std::lock_guard guard(domain_.lock());
  request.to = to < links_.size() ? links_[to] : nullptr;
  if (request.to == nullptr) return -FI_EADDRNOTAVAIL;
  request.inject = (flags & FI_INJECT) != 0;
  if (request.inject && request.source.bytes() + request.comparand.bytes() > kMostInjected) return -FI_EINVAL;
  request.wanted = request.wanted && (!selects_sends_ || (flags & FI_COMPLETION) != 0);
  if (send_queue_ != nullptr && send_queue_->is_full()) return -FI_EAGAIN;
  const auto status = guarded([&] { return messenger_.access(request); });
  if (status != -FI_EAGAIN) domain_.lock().note_activity();  // as in send()
  return status;
}

Counter* Endpoint::counter_of(const Completion& completion) const {
  if ((completion.flags & FI_READ) != 0) return read_counter_;
  return (completion.flags & FI_WRITE) != 0 ? write_counter_ : send_counter_;
}

void Endpoint::accessed(const Completion& completion) {
  report(completion, receive_queue_,
         (completion.flags & FI_REMOTE_READ) != 0 ? remote_read_counter_ : remote_write_counter_);
}

void Endpoint::sent(const Completion& completion) { report(completion, send_queue_, counter_of(completion)); }
void Endpoint::received(const Completion& completion) { report(completion, receive_queue_, receive_counter_); }

}  // namespace wherry::mpi
