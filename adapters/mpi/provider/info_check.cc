// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string_view>

#include "adapters/mpi/messenger/messenger.hpp"
#include "info.hpp"

namespace wherry::mpi {
namespace {

bool is_within(std::uint64_t asked, std::uint64_t offered) { return (asked & ~offered) == 0; }

bool endpoint_fits(const fi_ep_attr& asked) {
  if (asked.type != FI_EP_UNSPEC && asked.type != FI_EP_RDM) return false;
  if (asked.protocol != FI_PROTO_UNSPEC && asked.protocol != kProtocol) return false;
  if (asked.max_msg_size > SIZE_MAX / 2 || asked.msg_prefix_size > 0 || asked.auth_key_size > 0) return false;
  if (asked.max_order_raw_size > kMostOrdered || asked.max_order_war_size > kMostOrdered ||
      asked.max_order_waw_size > kMostOrdered)
    return false;
  return asked.tx_ctx_cnt <= 1 && asked.rx_ctx_cnt <= 1;  // FI_SHARED_CONTEXT is a large number
}

bool domain_fits(const fi_domain_attr& asked) {
  if (asked.name != nullptr && std::string_view(asked.name) != kProviderName) return false;
  if (asked.control_progress == FI_PROGRESS_AUTO || asked.data_progress == FI_PROGRESS_AUTO) return false;
  if (asked.threading > FI_THREAD_ENDPOINT || asked.av_type > FI_AV_TABLE) return false;
  if (asked.cq_data_size > kDataBytes || asked.mr_key_size > sizeof(std::uint64_t)) return false;
  if (asked.max_ep_tx_ctx > 1 || asked.max_ep_rx_ctx > 1 || asked.max_ep_stx_ctx > 0 || asked.max_ep_srx_ctx > 0)
    return false;
  return is_within(asked.caps, FI_LOCAL_COMM | FI_REMOTE_COMM) && asked.auth_key_size == 0;
}

bool fabric_fits(const fi_fabric_attr& asked) {
  if (asked.name != nullptr && std::string_view(asked.name) != kProviderName) return false;
  return asked.prov_name == nullptr || std::strstr(asked.prov_name, kProviderName) != nullptr;
}

bool sends_fit(const fi_tx_attr& asked) {
  return is_within(asked.caps, kPrimary | kSecondary) && is_within(asked.op_flags, kSendFlags) &&
         is_within(asked.msg_order, kOrder) && asked.comp_order == 0 && asked.inject_size <= kMostInjected &&
         asked.size <= kQueueSize && asked.iov_limit <= kMostBuffers && asked.rma_iov_limit <= kMostRemoteRanges;
}

bool receives_fit(const fi_rx_attr& asked) {
  return is_within(asked.caps, kPrimary | kSecondary) && is_within(asked.op_flags, kReceiveFlags) &&
         is_within(asked.msg_order, kOrder) && asked.comp_order == 0 && asked.size <= kQueueSize &&
         asked.iov_limit <= kMostBuffers;
}

}  // namespace

bool is_offered(std::uint32_t /*version*/, const fi_info& hints) {
  if (!is_within(hints.caps, kPrimary | kSecondary)) return false;
  if (hints.addr_format != FI_FORMAT_UNSPEC && hints.addr_format != FI_ADDR_STR) return false;
  return (hints.ep_attr == nullptr || endpoint_fits(*hints.ep_attr)) &&
         (hints.domain_attr == nullptr || domain_fits(*hints.domain_attr)) &&
         (hints.fabric_attr == nullptr || fabric_fits(*hints.fabric_attr)) &&
         (hints.tx_attr == nullptr || sends_fit(*hints.tx_attr)) &&
         (hints.rx_attr == nullptr || receives_fit(*hints.rx_attr));
}

}  // namespace wherry::mpi
