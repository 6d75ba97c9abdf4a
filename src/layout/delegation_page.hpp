// SPDX-License-Identifier: Apache-2.0
// Memory by which `wherry mount` tells a program until when an open file is delegated, so that the program can read it
// in place, and the ioctl for it. Both ends run on one machine. Every field has a fixed size.
#pragma once

#include <sys/ioctl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace wherry::layout {

inline constexpr std::uint32_t kDelegationPageVersion = 1;
inline constexpr std::uint32_t kDelegationPageMagic = 0x50474C44;  ///< "DLGP" as bytes
inline constexpr std::size_t kDelegationPageBytes = 4096;          ///< size of the memory

using DelegationWord32 = std::atomic<std::uint32_t>;
using DelegationWord64 = std::atomic<std::uint64_t>;
static_assert(DelegationWord32::is_always_lock_free && sizeof(DelegationWord32) == 4);
static_assert(DelegationWord64::is_always_lock_free && sizeof(DelegationWord64) == 8);

struct DelegationPage {
  std::uint32_t version;    // W: program, once: kDelegationPageVersion
  std::uint32_t magic;      // W: program, once
  std::uint8_t random[16];  // W: program, once: the same as in the offer
  std::uint8_t reserved0[40];
  DelegationWord32 recalls;  // W: mount: changes before the file may change
  std::uint8_t reserved1[4];
  DelegationWord64 until;  // W: mount: end of the delegation in ns, by the program's CLOCK_MONOTONIC; 0: there is none
  std::uint8_t reserved2[48];
};
static_assert(sizeof(DelegationPage) == 128 && offsetof(DelegationPage, magic) == 4);
static_assert(offsetof(DelegationPage, random) == 8 && offsetof(DelegationPage, reserved0) == 24);
static_assert(offsetof(DelegationPage, recalls) == 64 && offsetof(DelegationPage, reserved1) == 68);
static_assert(offsetof(DelegationPage, until) == 72 && offsetof(DelegationPage, reserved2) == 80);
static_assert(sizeof(DelegationPage) <= kDelegationPageBytes);

/// Names the memory to the mount.
struct DelegationPageOffer {
  std::uint32_t version;    // W: program: kDelegationPageVersion
  std::int32_t descriptor;  // W: program: of a memfd in this process that cannot shrink
  std::uint8_t random[16];  // W: program
  std::uint64_t now;        // W: program: CLOCK_MONOTONIC in ns. The mount's clock may have another origin
};
static_assert(sizeof(DelegationPageOffer) == 32 && offsetof(DelegationPageOffer, descriptor) == 4);
static_assert(offsetof(DelegationPageOffer, random) == 8 && offsetof(DelegationPageOffer, now) == 24);

/// Attaches the page to an open file.
inline constexpr unsigned long kDelegationPageAttach = _IOW(0xE7, 5, DelegationPageOffer);

}  // namespace wherry::layout
