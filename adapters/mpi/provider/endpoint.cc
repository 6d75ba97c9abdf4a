// SPDX-License-Identifier: Apache-2.0
#include "endpoint.hpp"

#include <rdma/fi_cm.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "address_vector.hpp"
#include "base/config.hpp"
#include "declared.hpp"
#include "info.hpp"
#include "objects.hpp"

namespace wherry::mpi {
namespace {

int close(fid_t handle) {
  delete &Endpoint::of(handle);
  return 0;
}

int bind(fid_t handle, fid_t other, std::uint64_t flags) { return Endpoint::of(handle).bind(other, flags); }

int control(fid_t handle, int command, void* argument) { return Endpoint::of(handle).control(command, argument); }

fi_ops object_operations() {
  fi_ops result = closable(close);
  result.bind = bind;
  result.control = control;
  return result;
}
fi_ops object_calls = object_operations();

ssize_t cancel(fid_t handle, void* context) { return Endpoint::of(handle).cancel(context); }

int getopt(fid_t handle, int level, int name, void* value, std::size_t* bytes) {
  return level == FI_OPT_ENDPOINT ? Endpoint::of(handle).get_option(name, value, bytes) : -FI_ENOPROTOOPT;
}

int setopt(fid_t handle, int level, int name, const void* value, std::size_t bytes) {
  return level == FI_OPT_ENDPOINT ? Endpoint::of(handle).set_option(name, value, bytes) : -FI_ENOPROTOOPT;
}

fi_ops_ep endpoint_calls{
    sizeof(fi_ops_ep),  cancel, getopt, setopt, not_served<int>, not_served<int>, not_served<ssize_t>,
    not_served<ssize_t>};

int getname(fid_t handle, void* name, std::size_t* bytes) { return Endpoint::of(handle).name(name, bytes); }

fi_ops_cm connection_operations() {
  fi_ops_cm result{};
  result.size = sizeof(fi_ops_cm);
  result.setname = not_served<int>;
  result.getname = getname;
  result.getpeer = not_served<int>;
  result.connect = not_served<int>;
  result.listen = not_served<int>;
  result.accept = not_served<int>;
  result.reject = not_served<int>;
  result.shutdown = not_served<int>;
  result.join = not_served<int>;
  return result;
}
fi_ops_cm connection_calls = connection_operations();

MailboxOptions configured() {
  MailboxOptions options;
  const std::string layout = config::word(config::Key::mpi_layout);
  options.layout = layout == "equal" ? Layout::equal : layout == "topology" ? Layout::topology : Layout::adaptive;
  options.budget = config::number(config::Key::mpi_budget);
  options.lane = config::number(config::Key::ring);
  return options;
}

}  // namespace

Endpoint::Endpoint(Domain& domain, const fi_info& info, void* context)
    : fid_ep{{FI_CLASS_EP, context, &object_calls},
             &endpoint_calls,
             &connection_calls,
             &message_calls,
             &rma_calls,
             &tagged_calls,
             &atomic_calls,
             nullptr},
      domain_(domain),
      caps_(info.caps),
      directed_((info.caps & FI_DIRECTED_RECV) != 0),
      send_flags_(info.tx_attr == nullptr ? 0 : info.tx_attr->op_flags),
      receive_flags_(info.rx_attr == nullptr ? 0 : info.rx_attr->op_flags),
      messenger_(*this, configured(), job_processors(), config::number(config::Key::mpi_eager)) {
  const bool serves = (caps_ & (FI_RMA | FI_ATOMIC)) != 0;
  const bool says = (caps_ & kDirections) != 0;  // no direction stands for all
  messenger_.serve(domain_.regions, {.reads = serves && (!says || (caps_ & FI_REMOTE_READ) != 0),
                                     .writes = serves && (!says || (caps_ & FI_REMOTE_WRITE) != 0)});
  const std::lock_guard guard(domain_.lock());
  domain_.messengers.push_back(&messenger_);
  ++domain_.users;
  Declared::instance().opened(messenger_);
}

Endpoint::~Endpoint() {
  Declared::instance().closed(messenger_);
  const std::lock_guard guard(domain_.lock());
  messenger_.drain();
  std::erase(domain_.messengers, &messenger_);
  for (CompletionQueue* queue : {send_queue_, receive_queue_}) {
    if (queue == nullptr) continue;
    queue->waiting().remove(messenger_);
    if (queue->wait_object() != nullptr) queue->wait_object()->remove(messenger_.descriptor());
    --queue->users;
  }
  for (Counter* const counter : counters()) {
    if (counter != nullptr) stop_counting(*counter);
  }
  if (addresses_ != nullptr) addresses_->unbind(*this);
  --domain_.users;
}

Endpoint& Endpoint::of(fid_t handle) { return object_of<Endpoint, fid_ep>(handle); }

int Endpoint::open(Domain& domain, const fi_info* info, void* context, fid_ep** endpoint) {
  if (info == nullptr || (info->ep_attr != nullptr && info->ep_attr->type != FI_EP_RDM)) return -FI_EINVAL;
  return guarded([&] {
    *endpoint = new Endpoint(domain, *info, context);
    return 0;
  });
}

int Endpoint::bind(fid_t other, std::uint64_t flags) {
  const std::lock_guard guard(domain_.lock());
  switch (other->fclass) {
    case FI_CLASS_CQ:
      return guarded([&] { return bind_queue(CompletionQueue::of(other), flags); });
    case FI_CLASS_CNTR:
      return guarded([&] { return bind_counter(Counter::of(other), flags); });
    case FI_CLASS_AV:
      return guarded([&] { return bind_addresses(AddressVector::of(other)); });
    case FI_CLASS_EQ:
      return 0;
    default:
      return -FI_EINVAL;
  }
}

int Endpoint::bind_queue(CompletionQueue& queue, std::uint64_t flags) {
  if ((flags & ~std::uint64_t{FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION}) != 0) return -FI_EBADFLAGS;
  if ((flags & (FI_TRANSMIT | FI_RECV)) == 0) return -FI_EINVAL;
  if ((flags & FI_TRANSMIT) != 0 && send_queue_ != nullptr) return -FI_EINVAL;
  if ((flags & FI_RECV) != 0 && receive_queue_ != nullptr) return -FI_EINVAL;
  const bool selects = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if ((flags & FI_TRANSMIT) != 0) {
    send_queue_ = &queue;
    selects_sends_ = selects;
    ++queue.users;
  }
  if ((flags & FI_RECV) != 0) {
    receive_queue_ = &queue;
    selects_receives_ = selects;
    ++queue.users;
  }
  queue.waiting().add(messenger_);
  if (queue.wait_object() != nullptr) queue.wait_object()->add(messenger_.descriptor());
  return 0;
}

int Endpoint::bind_counter(Counter& counter, std::uint64_t flags) {
  constexpr std::uint64_t kKinds = FI_SEND | FI_RECV | kDirections;
  if ((flags & ~kKinds) != 0) return -FI_EBADFLAGS;
  const auto take = [&](std::uint64_t kind, Counter*& place) {
    if ((flags & kind) == 0) return;
    if (Counter* const before = std::exchange(place, &counter); before != nullptr) stop_counting(*before);
    ++counter.users;
  };
  take(FI_SEND, send_counter_);
  take(FI_RECV, receive_counter_);
  take(FI_READ, read_counter_);
  take(FI_WRITE, write_counter_);
  take(FI_REMOTE_READ, remote_read_counter_);
  take(FI_REMOTE_WRITE, remote_write_counter_);
  // All of them: one that was replaced for one kind of completions may still count another.
  for (Counter* const counts : counters()) {
    if (counts == nullptr) continue;
    counts->waiting().add(messenger_);
    if (counts->wait_object() != nullptr) counts->wait_object()->add(messenger_.descriptor());
  }
  return 0;
}

/// For one kind of completions.
void Endpoint::stop_counting(Counter& counter) noexcept {
  counter.waiting().remove(messenger_);
  if (counter.wait_object() != nullptr) counter.wait_object()->remove(messenger_.descriptor());
  --counter.users;
}

int Endpoint::bind_addresses(AddressVector& addresses) {
  if (addresses_ != nullptr) return -FI_EINVAL;
  addresses_ = &addresses;
  addresses.bind(*this);
  for (fi_addr_t address = 0; address < addresses.size(); ++address) {
    if (const Name* name = addresses.find(address); name != nullptr) inserted(address, *name);
  }
  return 0;
}

void Endpoint::inserted(fi_addr_t address, const Name& name) {
  if (address >= links_.size()) links_.resize(address + 1);
  Link& link = messenger_.link_to(name);
  links_[address] = &link;
  if (link.address == kAnySource) link.address = address;
}

void Endpoint::removed(fi_addr_t address) {
  Link* link = std::exchange(links_[address], nullptr);
  if (link == nullptr || link->address != address) return;
  const auto other = std::ranges::find(links_, link);
  link->address = other == links_.end() ? kAnySource : static_cast<fi_addr_t>(other - links_.begin());
}

int Endpoint::enable() const {
  if (addresses_ == nullptr) return -FI_ENOAV;
  return send_queue_ == nullptr && receive_queue_ == nullptr && send_counter_ == nullptr && receive_counter_ == nullptr
             ? -FI_ENOCQ
             : 0;
}

int Endpoint::control(int command, void* argument) {
  const std::lock_guard guard(domain_.lock());
  auto* flags = static_cast<std::uint64_t*>(argument);
  switch (command) {
    case FI_ENABLE:
      return enable();
    case FI_GETOPSFLAG:
      if ((*flags & FI_TRANSMIT) != 0 && (*flags & FI_RECV) != 0) return -FI_EINVAL;
      *flags = (*flags & FI_TRANSMIT) != 0 ? send_flags_ : receive_flags_;
      return 0;
    case FI_SETOPSFLAG:
      if ((*flags & FI_TRANSMIT) != 0) send_flags_ = *flags & ~std::uint64_t{FI_TRANSMIT | FI_RECV};
      if ((*flags & FI_RECV) != 0) receive_flags_ = *flags & ~std::uint64_t{FI_TRANSMIT | FI_RECV};
      return 0;
    default:
      return -FI_ENOSYS;
  }
}

int Endpoint::get_option(int name, void* value, std::size_t* bytes) {
  if (name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (*bytes < sizeof(std::size_t)) return -FI_ETOOSMALL;
  const std::lock_guard guard(domain_.lock());
  const std::size_t least = messenger_.least_room();
  std::memcpy(value, &least, sizeof(least));
  *bytes = sizeof(least);
  return 0;
}

int Endpoint::set_option(int name, const void* value, std::size_t bytes) {
  if (name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  std::size_t least = 0;
  if (bytes < sizeof(least)) return -FI_ETOOSMALL;
  std::memcpy(&least, value, sizeof(least));
  const std::lock_guard guard(domain_.lock());
  messenger_.set_least_room(least);
  return 0;
}

int Endpoint::name(void* to, std::size_t* bytes) {
  const std::size_t room = *bytes;
  *bytes = kNameBytes;
  if (room > 0) std::memcpy(to, messenger_.name().bytes().data(), std::min(room, kNameBytes));
  return room < kNameBytes ? -FI_ETOOSMALL : 0;
}

ssize_t Endpoint::cancel(void* context) {
  const std::lock_guard guard(domain_.lock());
  return messenger_.cancel(context);
}

}  // namespace wherry::mpi
