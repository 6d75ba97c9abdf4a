// SPDX-License-Identifier: Apache-2.0
#include "info.hpp"

#include <rdma/fi_errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "adapters/mpi/messenger/messenger.hpp"
#include "adapters/mpi/messenger/name.hpp"
#include "base/config.hpp"
#include "objects.hpp"

namespace wherry::mpi {
namespace {

// Bytes for members that newer versions of libfabric may have added at the ends of the structures.
constexpr std::size_t kRoomToGrow = 512;

template <class Structure>
Structure* make() {
  return static_cast<Structure*>(std::calloc(1, sizeof(Structure) + kRoomToGrow));
}

fi_info* allocate() {
  auto* info = make<fi_info>();
  if (info == nullptr) return nullptr;
  info->tx_attr = make<fi_tx_attr>();
  info->rx_attr = make<fi_rx_attr>();
  info->ep_attr = make<fi_ep_attr>();
  info->domain_attr = make<fi_domain_attr>();
  info->fabric_attr = make<fi_fabric_attr>();
  if (info->tx_attr != nullptr && info->rx_attr != nullptr && info->ep_attr != nullptr &&
      info->domain_attr != nullptr && info->fabric_attr != nullptr) {
    info->domain_attr->name = strdup(kProviderName);
    info->fabric_attr->name = strdup(kProviderName);
    if (info->domain_attr->name != nullptr && info->fabric_attr->name != nullptr) return info;
  }
  free_info(info);
  return nullptr;
}

// Returns FI_REMOTE_COMM only if the hints ask for it. All peers are on this machine, but Open MPI accepts no provider
// without it.
std::uint64_t reach(const fi_info* hints) {
  if (hints == nullptr) return FI_LOCAL_COMM;
  const std::uint64_t asked = hints->caps | (hints->domain_attr == nullptr ? 0 : hints->domain_attr->caps);
  return FI_LOCAL_COMM | (asked & FI_REMOTE_COMM);
}

// Returns the primary capabilities that the hints ask for, or all if they ask for none. Without FI_SEND and FI_RECV
// both are meant; likewise the directions of one-sided operations.
std::uint64_t capabilities(const fi_info* hints) {
  const std::uint64_t secondary = (kSecondary & ~std::uint64_t{FI_REMOTE_COMM}) | reach(hints);
  if (hints == nullptr || hints->caps == 0) return kPrimary | secondary;
  std::uint64_t primary = hints->caps & kPrimary;
  if ((primary & (FI_MSG | FI_TAGGED)) != 0 && (primary & (FI_SEND | FI_RECV)) == 0) primary |= FI_SEND | FI_RECV;
  const bool is_one_sided = (primary & (FI_RMA | FI_ATOMIC)) != 0;
  if (is_one_sided && (primary & kDirections) == 0) primary |= kDirections;
  return primary | (is_one_sided ? secondary : secondary & ~std::uint64_t{FI_RMA_EVENT});
}

void fill_sends(fi_tx_attr& attributes, std::uint64_t caps, std::size_t eager, const fi_tx_attr* asked) {
  attributes.caps = caps & (FI_MSG | FI_TAGGED | FI_SEND | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE);
  attributes.op_flags = asked == nullptr ? 0 : asked->op_flags;
  attributes.msg_order = kOrder;
  // MPI libraries inject every message up to this limit, and an injected message is copied.
  attributes.inject_size = std::max(eager, asked == nullptr ? 0 : asked->inject_size);
  attributes.size = kQueueSize;
  attributes.iov_limit = kMostBuffers;
  attributes.rma_iov_limit = kMostRemoteRanges;
}

void fill_receives(fi_rx_attr& attributes, std::uint64_t caps, const fi_rx_attr* asked) {
  attributes.caps = caps & (FI_MSG | FI_TAGGED | FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_RMA |
                            FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT);
  attributes.op_flags = asked == nullptr ? 0 : asked->op_flags;
  attributes.msg_order = kOrder;
  attributes.size = kQueueSize;
  attributes.iov_limit = kMostBuffers;
}

void fill_endpoint(fi_ep_attr& attributes) {
  attributes.type = FI_EP_RDM;
  attributes.protocol = kProtocol;
  attributes.protocol_version = kPacketVersion;
  attributes.max_msg_size = SIZE_MAX / 2;
  attributes.max_order_raw_size = attributes.max_order_war_size = attributes.max_order_waw_size = kMostOrdered;
  attributes.mem_tag_format = kTagFormat;
  attributes.tx_ctx_cnt = attributes.rx_ctx_cnt = 1;
}

// Returns the registration mode. By default the application has no duties. Applications for an API before 1.5 know only
// FI_MR_BASIC and FI_MR_SCALABLE; later ones may ask for them, too. FI_MR_BASIC, with addresses and keys chosen by the
// provider, is only for those that ask for it.
int mr_mode(std::uint32_t version, int asked) {
  if (asked == FI_MR_BASIC || asked == FI_MR_SCALABLE) return asked;
  return version < FI_VERSION(1, 5) ? FI_MR_SCALABLE : 0;
}

void fill_domain(fi_domain_attr& attributes, std::uint32_t version, std::uint64_t caps, const fi_domain_attr* asked) {
  attributes.threading = asked == nullptr || asked->threading == FI_THREAD_UNSPEC ? FI_THREAD_SAFE : asked->threading;
  attributes.control_progress = attributes.data_progress = FI_PROGRESS_MANUAL;
  attributes.resource_mgmt = FI_RM_ENABLED;
  attributes.av_type = asked == nullptr || asked->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : asked->av_type;
  attributes.mr_mode = mr_mode(version, asked == nullptr ? 0 : asked->mr_mode);
  attributes.mr_key_size = sizeof(std::uint64_t);
  attributes.cq_data_size = kDataBytes;
  attributes.cq_cnt = attributes.ep_cnt = attributes.cntr_cnt = 1024;
  attributes.tx_ctx_cnt = attributes.rx_ctx_cnt = 1024;
  attributes.max_ep_tx_ctx = attributes.max_ep_rx_ctx = 1;
  attributes.mr_iov_limit = kMostRegionRanges;
  attributes.mr_cnt = 1 << 16;
  attributes.caps = caps & (FI_LOCAL_COMM | FI_REMOTE_COMM);
}

void fill(fi_info& info, std::uint32_t version, std::size_t eager, const fi_info* hints) {
  info.caps = capabilities(hints);
  info.addr_format = FI_ADDR_STR;
  fill_sends(*info.tx_attr, info.caps, eager, hints == nullptr ? nullptr : hints->tx_attr);
  fill_receives(*info.rx_attr, info.caps, hints == nullptr ? nullptr : hints->rx_attr);
  fill_endpoint(*info.ep_attr);
  fill_domain(*info.domain_attr, version, info.caps, hints == nullptr ? nullptr : hints->domain_attr);
  info.fabric_attr->prov_version = kPacketVersion;
  info.fabric_attr->api_version = version;
}

// Stores a copy for a fi_info. Returns false if memory is short.
bool store(const Name& name, void*& address, std::size_t& bytes) {
  address = std::malloc(kNameBytes);
  if (address == nullptr) return false;
  std::memcpy(address, name.bytes().data(), kNameBytes);
  bytes = kNameBytes;
  return true;
}

std::optional<Name> read_name(const void* address, std::size_t bytes) {
  return bytes < kNameBytes ? std::nullopt : Name::parse_bytes(address);
}

// Whether a source address is this machine, by one of its names or by the name in an earlier fi_info. An endpoint
// chooses its port itself.
bool is_own_address(const std::string& node) {
  if (const auto name = Name::parse(node)) return name->is_unbound();
  std::array<char, 256> own{};
  gethostname(own.data(), own.size() - 1);
  return node == "localhost" || node.starts_with("127.") || node == "::1" || node == own.data();
}

// Returns false if the caller names a source that is not this machine, or a peer or an address that is not of this
// provider.
bool read_addresses(const char* node, std::uint64_t flags, const fi_info* hints, std::optional<Name>& destination) {
  if ((flags & FI_SOURCE) != 0) return node == nullptr || is_own_address(node);
  if (hints != nullptr && hints->src_addr != nullptr) {
    const auto source = read_name(hints->src_addr, hints->src_addrlen);
    if (!source || !source->is_unbound()) return false;
  }
  if (node != nullptr) {
    destination = Name::parse(node);
    return destination.has_value();
  }
  if (hints == nullptr || hints->dest_addr == nullptr) return true;
  destination = read_name(hints->dest_addr, hints->dest_addrlen);
  return destination.has_value();
}

}  // namespace

void free_info(fi_info* info) {
  if (info == nullptr) return;
  if (info->domain_attr != nullptr) std::free(info->domain_attr->name);
  if (info->fabric_attr != nullptr) std::free(info->fabric_attr->name);
  std::free(info->src_addr);
  std::free(info->dest_addr);
  std::free(info->tx_attr);
  std::free(info->rx_attr);
  std::free(info->ep_attr);
  std::free(info->domain_attr);
  std::free(info->fabric_attr);
  std::free(info);
}

int get_info(std::uint32_t version, const char* node, const char* /*service*/, std::uint64_t flags,
             const fi_info* hints, fi_info** info) {
  return guarded([&] {
    std::optional<Name> destination;
    if (!read_addresses(node, flags, hints, destination)) return -FI_ENODATA;
    if (hints != nullptr && !is_offered(version, *hints)) return -FI_ENODATA;
    const std::size_t eager = config::number(config::Key::mpi_eager);
    fi_info* made = allocate();
    if (made == nullptr) return -FI_ENOMEM;
    fill(*made, version, eager, hints);
    if (!store(Name::unbound(), made->src_addr, made->src_addrlen) ||
        (destination && !store(*destination, made->dest_addr, made->dest_addrlen))) {
      free_info(made);
      return -FI_ENOMEM;
    }
    *info = made;
    return 0;
  });
}

}  // namespace wherry::mpi
