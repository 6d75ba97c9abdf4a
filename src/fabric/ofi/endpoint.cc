// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/endpoint.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <wherry/error.hpp>

#include "base/log.hpp"
#include "base/readable.hpp"
#include "fabric/ofi/data_port.hpp"
#include "fabric/ofi/library.hpp"

namespace wherry::fabric::ofi {
namespace {

constexpr auto kVersion = FI_VERSION(1, 14);

struct FreeInfo {
  void operator()(fi_info* info) const { Library::instance().freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

[[noreturn]] void fail(long result, const char* operation, const std::string& advice) {
  const int error = static_cast<int>(-result);
  check_descriptors(error, operation, "");
  throw Error(error > 0 && error < FI_ERRNO_OFFSET ? error : EIO, operation, "",
              std::string(Library::instance().strerror(error)) + "; " + advice);
}

void check(long result, const char* operation) {
  if (result != 0) fail(result, operation, "FI_LOG_LEVEL=warn makes libfabric say more");
}

template <class Object>
void close_object(Object*& object) noexcept {
  if (object != nullptr) (void)::fi_close(&object->fid);
  object = nullptr;
}

int descriptor_of(fid* object) {
  int descriptor = -1;
  check(::fi_control(object, FI_GETWAIT, &descriptor), "get libfabric's descriptor");
  return descriptor;
}

bool may_sleep_on(fid_fabric* fabric, fid* object) { return ::fi_trywait(fabric, &object, 1) == FI_SUCCESS; }

Info find_provider() {
  const Library& library = Library::instance();
  const Info hints(library.dupinfo(nullptr));
  if (hints == nullptr) throw Error(ENOMEM, "find a provider of libfabric", "tcp", "free memory");
  constexpr auto kOrder = FI_ORDER_WAW | FI_ORDER_SAW | FI_ORDER_SAS;
  hints->caps = FI_MSG | FI_RMA;
  hints->ep_attr->type = FI_EP_MSG;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->mr_mode = FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
  hints->tx_attr->msg_order = kOrder;
  hints->rx_attr->msg_order = kOrder;
  hints->fabric_attr->prov_name = ::strdup("tcp");
  fi_info* found = nullptr;
  const int result = library.getinfo(kVersion, nullptr, nullptr, 0, hints.get(), &found);
  if (result != 0) fail(result, "find libfabric's provider tcp", "fi_info -p tcp shows whether it is there");
  return Info(found);
}

/// Sets an address of an info. It is allocated with malloc, because libfabric frees it with free.
void set_address(void*& field, std::size_t& bytes, const SocketAddress& address) {
  std::free(field);
  field = std::malloc(address.length());
  if (field == nullptr) throw Error(ENOMEM, "connect a data endpoint", address.to_string(), "free memory");
  std::memcpy(field, address.get(), address.length());
  bytes = address.length();
}

Info at(const fi_info* info, const SocketAddress& local) {
  Info made(Library::instance().dupinfo(info));
  if (made == nullptr) throw Error(ENOMEM, "make a data endpoint", local.to_string(), "free memory");
  made->addr_format = local.family() == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
  set_address(made->src_addr, made->src_addrlen, local);
  std::free(std::exchange(made->dest_addr, nullptr));
  made->dest_addrlen = 0;
  return made;
}

/// Returns the advice if memory cannot be registered. Providers of network cards lock it; tcp locks nothing.
std::string advice_on_registering(std::size_t bytes) {
  rlimit limit{};
  (void)::getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string most = limit.rlim_cur == RLIM_INFINITY ? "any memory" : human_bytes(limit.rlim_cur) + " in all";
  return human_bytes(bytes) + " more are needed, and this process may lock " + most +
         "; raise the limit of locked memory (ulimit -l), or free memory";
}

std::uint64_t random_key() {
  std::uint64_t key = 0;
  // Up to 256 bytes are returned whole, or not at all.
  if (::getrandom(&key, sizeof(key), 0) < 0)
    fail(-errno, "make a random key", "its seccomp profile must allow getrandom");
  return key;
}

}  // namespace

/// A domain of libfabric, and how many endpoints it has.
struct SharedDomain {
  /// With more, the kernel refuses to watch them (EINVAL). A domain of libfabric 2.5.1 takes 10 MB.
  static constexpr int kMostEndpoints = 64;

  SharedDomain(fid_fabric* fabric, fi_info* info) {
    check(::fi_domain(fabric, info, &domain, nullptr), "open libfabric's domain");
    registers_by_address = (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  }
  SharedDomain(const SharedDomain&) = delete;
  SharedDomain& operator=(const SharedDomain&) = delete;
  ~SharedDomain() { close_object(domain); }

  fid_domain* domain = nullptr;
  bool registers_by_address = false;
  int endpoints = 0;
};

Registration::~Registration() { close_object(region_); }

std::uint64_t Registration::key() const { return ::fi_mr_key(region_); }

Knock::Knock(Knock&& other) noexcept
    : listener_(other.listener_), info_(std::exchange(other.info_, nullptr)), token_(other.token_) {}

Knock::~Knock() {
  if (info_ == nullptr) return;
  (void)::fi_reject(listener_, info_->handle, nullptr, 0);
  Library::instance().freeinfo(info_);
}

fi_info* Knock::release() { return std::exchange(info_, nullptr); }

struct Domain::Listening {
  SocketAddress address;
  fid_pep* endpoint;
};

Domain::Domain() : info_(find_provider().release()) {
  check(Library::instance().fabric(info_->fabric_attr, &fabric_, nullptr), "open libfabric's fabric");
  first_ = domain_for_one_more();
  fi_eq_attr attributes{};
  attributes.wait_obj = FI_WAIT_FD;
  check(::fi_eq_open(fabric_, &attributes, &events_, nullptr), "open libfabric's event queue");
  descriptor_ = descriptor_of(&events_->fid);
}

Domain::~Domain() {
  for (Listening& listening : listening_) close_object(listening.endpoint);
  close_object(events_);
  first_.reset();
  close_object(fabric_);
  Library::instance().freeinfo(info_);
}

bool Domain::may_sleep() const { return may_sleep_on(fabric_, &events_->fid); }

std::optional<Domain::News> Domain::read() {
  alignas(fi_eq_cm_entry) std::array<std::byte, sizeof(fi_eq_cm_entry) + 256> space;
  std::uint32_t event = 0;
  const auto bytes = ::fi_eq_read(events_, &event, space.data(), space.size(), 0);
  if (bytes == -FI_EAVAIL) return read_error();
  if (bytes < static_cast<long>(sizeof(fi_eq_cm_entry))) return std::nullopt;
  const auto& entry = *reinterpret_cast<const fi_eq_cm_entry*>(space.data());
  switch (event) {
    case FI_CONNREQ:
      return on_knock(
          entry.fid, entry.info,
          std::span<const std::byte>(space).first(static_cast<std::size_t>(bytes)).subspan(sizeof(fi_eq_cm_entry)));
    case FI_CONNECTED:
      return News{.kind = News::Kind::connected, .context = entry.fid->context};
    case FI_SHUTDOWN:
      return News{.kind = News::Kind::gone, .context = entry.fid->context};
    default:
      return News{.kind = News::Kind::connected};
  }
}

std::optional<Domain::News> Domain::read_error() {
  fi_eq_err_entry error{};
  if (::fi_eq_readerr(events_, &error, 0) < 0) return std::nullopt;
  void* const context = error.fid == nullptr ? nullptr : error.fid->context;
  return News{.kind = News::Kind::gone, .context = context, .error = error.err};
}

std::optional<Domain::News> Domain::on_knock(fid* listener, fi_info* info, std::span<const std::byte> data) {
  Token token{};
  std::copy_n(data.begin(), std::min(data.size(), token.size()), token.begin());
  return News{.kind = News::Kind::knock,
              .knock = std::optional<Knock>(std::in_place, reinterpret_cast<fid_pep*>(listener), info, token)};
}

std::uint16_t Domain::listen(const SocketAddress& local, const PortRange& ports) {
  const auto known =
      std::ranges::find(listening_, local.host(), [](const Listening& each) { return each.address.host(); });
  if (known != listening_.end()) return known->address.port();
  const auto start = random_key() % ports.size();
  for (std::uint32_t i = 0; i < ports.size(); ++i) {
    const auto port = static_cast<std::uint16_t>(ports.first + (start + i) % ports.size());
    const Info info = at(info_, local.with_port(port));
    fid_pep* endpoint = nullptr;
    // The tcp provider binds the port here, others when they listen.
    int result = ::fi_passive_ep(fabric_, info.get(), &endpoint, nullptr);
    if (result == 0) result = ::fi_pep_bind(endpoint, &events_->fid, 0);
    if (result == 0) result = ::fi_listen(endpoint);
    if (result == 0) {
      if (!guard_data_port(local.with_port(port))) {
        log::write(log::Level::info, "ofi: the socket of data port " + std::to_string(port) + " was not found");
      }
      listening_.push_back({local.with_port(port), endpoint});
      return port;
    }
    close_object(endpoint);
    if (result != -FI_EADDRINUSE) check(result, "listen for data endpoints");
  }
  throw Error(EADDRINUSE, "listen for data endpoints", local.to_string(),
              "no port of " + ports.to_string() + " is free; set WHERRY_PORTS to a larger range");
}

std::shared_ptr<SharedDomain> Domain::domain_for_one_more() {
  std::erase_if(domains_, [](const auto& domain) { return domain.expired(); });
  for (const auto& known : domains_) {
    if (auto domain = known.lock(); domain->endpoints < SharedDomain::kMostEndpoints) return domain;
  }
  auto made = std::make_shared<SharedDomain>(fabric_, info_);
  domains_.push_back(made);
  return made;
}

bool Domain::end_strangers(const AddressTexts& peers) {
  if (listening_.empty()) return false;
  AddressTexts local;
  for (const Listening& each : listening_) local.insert(each.address.to_string());
  suspects_ = ofi::end_strangers(local, peers, suspects_);
  return !suspects_.empty();
}

std::unique_ptr<Registration> Endpoint::expose(std::span<std::byte> memory) const {
  fid_mr* region = nullptr;
  int result = 0;
  // Tries again if the random key is in use, which is extremely unlikely.
  for (int attempt = 0; attempt < 3; ++attempt) {
    result = ::fi_mr_reg(domain_->domain, memory.data(), memory.size(), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                         random_key(), 0, &region, nullptr);
    if (result != -FI_ENOKEY) break;
  }
  if (result != 0) fail(result, "register memory", advice_on_registering(memory.size()));
  const auto address = domain_->registers_by_address ? reinterpret_cast<std::uint64_t>(memory.data()) : 0;
  return std::make_unique<Registration>(region, address, domain_);
}

Endpoint::Endpoint(Domain& domain, const SocketAddress& local, const SocketAddress& remote, const Token& token,
                   void* context)
    : fabric_(domain.fabric_) {
  const Info info = at(domain.info_, local.with_port(0));
  set_address(info->dest_addr, info->dest_addrlen, remote);
  try {
    open(domain, info.get(), context);
    check(::fi_connect(endpoint_, remote.get(), token.data(), token.size()), "connect a data endpoint");
  } catch (...) {
    close();
    throw;
  }
}

Endpoint::Endpoint(Domain& domain, Knock knock, void* context) : fabric_(domain.fabric_) {
  try {
    open(domain, knock.info(), context);
    const Info info(knock.release());
    check(::fi_accept(endpoint_, nullptr, 0), "accept a data endpoint");
  } catch (...) {
    close();
    throw;
  }
}

void Endpoint::open(Domain& domain, fi_info* info, void* context) {
  domain_ = domain.domain_for_one_more();
  ++domain_->endpoints;
  check(::fi_endpoint(domain_->domain, info, &endpoint_, context), "make a data endpoint");
  fi_cq_attr attributes{};
  attributes.format = FI_CQ_FORMAT_DATA;
  attributes.wait_obj = FI_WAIT_FD;
  attributes.size = 4 * kMostInFlight;
  check(::fi_cq_open(domain_->domain, &attributes, &completions_, nullptr), "open a completion queue");
  check(::fi_ep_bind(endpoint_, &domain.events_->fid, 0), "bind a data endpoint");
  check(::fi_ep_bind(endpoint_, &completions_->fid, FI_TRANSMIT | FI_RECV), "bind a data endpoint");
  check(::fi_enable(endpoint_), "enable a data endpoint");
  descriptor_ = descriptor_of(&completions_->fid);
  carries_words_ = info->domain_attr->cq_data_size >= sizeof(std::uint64_t);
  most_bytes_ = info->ep_attr->max_msg_size;
  for (auto& buffer : received_) {
    if (!post_receive(buffer)) check(-FI_EOTHER, "post a receive");
  }
}

Endpoint::~Endpoint() { close(); }

void Endpoint::close() noexcept {
  close_object(endpoint_);
  close_object(completions_);
  if (domain_ != nullptr) --domain_->endpoints;
  domain_.reset();
}

bool Endpoint::post_receive(layout::LinkMessage& buffer) {
  return ::fi_recv(endpoint_, &buffer, sizeof(buffer), nullptr, 0, &buffer) == 0;
}

namespace {

Endpoint::Posted posted(long result) {
  if (result == 0) return Endpoint::Posted::yes;
  return result == -FI_EAGAIN ? Endpoint::Posted::full : Endpoint::Posted::dead;
}

}  // namespace

Endpoint::Posted Endpoint::write(std::span<const std::byte> source, const RemotePlace& to,
                                 std::optional<std::uint64_t> data) {
  return posted(
      data ? ::fi_writedata(endpoint_, source.data(), source.size(), nullptr, *data, 0, to.address, to.key, nullptr)
           : ::fi_write(endpoint_, source.data(), source.size(), nullptr, 0, to.address, to.key, nullptr));
}

Endpoint::Posted Endpoint::read(std::span<std::byte> into, const RemotePlace& from) {
  return posted(::fi_read(endpoint_, into.data(), into.size(), nullptr, 0, from.address, from.key, nullptr));
}

Endpoint::Posted Endpoint::send(const layout::LinkMessage& message) {
  // Completions come in order, so the oldest buffer is free.
  layout::LinkMessage& place = sent_[next_sent_];
  place = message;
  const Posted result = posted(::fi_send(endpoint_, &place, sizeof(place), nullptr, 0, nullptr));
  if (result == Posted::yes) next_sent_ = (next_sent_ + 1) % sent_.size();
  return result;
}

int Endpoint::poll(Handler& handler, int most) {
  int handled = 0;
  while (handled < most) {
    std::array<fi_cq_data_entry, 16> entries;
    const auto got = ::fi_cq_read(completions_, entries.data(), entries.size());
    if (got == -FI_EAGAIN) return handled;
    if (got < 0) return -1;
    for (const auto& entry : std::span(entries).first(static_cast<std::size_t>(got))) {
      if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) {
        handler.on_word(entry.data);
      } else if ((entry.flags & FI_RECV) != 0) {
        auto& buffer = *static_cast<layout::LinkMessage*>(entry.op_context);
        const layout::LinkMessage message = buffer;
        const bool whole = entry.len == sizeof(message);
        if (!whole || !post_receive(buffer)) return -1;
        handler.on_message(message);
      } else if ((entry.flags & FI_READ) != 0) {
        handler.on_read();
      } else {
        handler.on_sent();
      }
    }
    handled += static_cast<int>(got);
    // Reading on would drive the provider again, which takes two system calls.
    if (static_cast<std::size_t>(got) < entries.size()) break;
  }
  return handled;
}

std::optional<SocketAddress> Endpoint::peer() const {
  sockaddr_storage address{};
  std::size_t length = sizeof address;
  if (::fi_getpeer(endpoint_, &address, &length) != 0) return std::nullopt;
  return SocketAddress(reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length));
}

bool Endpoint::may_sleep() const { return may_sleep_on(fabric_, &completions_->fid); }

}  // namespace wherry::fabric::ofi
