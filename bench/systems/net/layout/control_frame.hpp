// SPDX-License-Identifier: Apache-2.0
// The frames of the control connection of `wherry bench net`: a header, then a JSON object.
//
// The program that connects is the driver. A frame has one of these members:
//
// | member       | from        | meaning                                                            |
// |--------------|-------------|--------------------------------------------------------------------|
// | hello: N     | both, first | the version of this protocol; `version` is that of Wherry          |
// | run: {...}   | driver      | take a sample: the system, the sample, the job, a name             |
// | note: [...]  | both        | the bytes that a rank posts (ExchangeArea)                         |
// | barrier: {}  | both        | a rank has arrived at its next barrier; with its lap and warm_up   |
// | failed: "."  | listener    | rank 0 failed, and why                                             |
// | end: true    | driver      | rank 1 has ended                                                   |
// | ended: {}    | listener    | the answer: `result`, what rank 0 measured, or `failed`            |
//
// All but hello have `sample`, its number: frames of an earlier sample are skipped.
#pragma once

#include <cstdint>

namespace wherry::bench::net::layout {

constexpr int kProtocol = 1;

/// Little-endian, as all machines that Wherry runs on.
struct FrameHeader {
  std::uint32_t magic = 0;  ///< kMagic
  std::uint32_t bytes = 0;  ///< of the JSON text, at most kMostBytes
};
static_assert(sizeof(FrameHeader) == 8);

constexpr std::uint32_t kMagic = 0x4e425257;      // "WRBN"
constexpr std::uint32_t kMostBytes = 64U << 20U;  // a latency of each of some millions of messages

}  // namespace wherry::bench::net::layout
