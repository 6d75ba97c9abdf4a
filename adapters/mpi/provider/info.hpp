// SPDX-License-Identifier: Apache-2.0
// fi_getinfo(3): what this provider offers, and whether that satisfies the hints.
//
// The structures are read and freed by a libfabric that may be newer than the headers here. They are therefore
// allocated with room to grow, and by malloc's family. libfabric's own functions are not used: a linker would bind
// their oldest versions.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

namespace wherry::mpi {

inline constexpr const char* kProviderName = "wherry";
/// Directions of one-sided operations. Hints without any of them ask for all.
inline constexpr std::uint64_t kDirections = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
inline constexpr std::uint64_t kPrimary =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SEND | FI_RECV | kDirections;
inline constexpr std::uint64_t kSecondary = FI_MULTI_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_RMA_EVENT;

/// The provider's `getinfo` entry. Returns -FI_ENODATA if the caller asks for something that is not offered.
int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
             fi_info** info);
/// Frees what `get_info` has returned, as fi_freeinfo(3) does. Null: does nothing.
void free_info(fi_info* info);

/// Whether everything that the hints ask for is offered (info_check.cc).
bool is_offered(std::uint32_t version, const fi_info& hints);

// What is offered, for info.cc and info_check.cc.
inline constexpr std::uint64_t kSendFlags =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;
inline constexpr std::uint64_t kOrder = FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW |
                                        FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW |
                                        FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |
                                        FI_ORDER_ATOMIC_WAW;
inline constexpr std::size_t kMostRegionRanges = 1;
inline constexpr std::uint64_t kReceiveFlags = FI_COMPLETION | FI_MULTI_RECV;
inline constexpr std::uint32_t kProtocol = FI_PROV_SPECIFIC | 0x5752;
inline constexpr std::uint64_t kTagFormat = 0xAAAAAAAAAAAAAAAA;  // every bit may be used
inline constexpr std::size_t kQueueSize = 1024;
inline constexpr std::size_t kDataBytes = 8;

}  // namespace wherry::mpi
