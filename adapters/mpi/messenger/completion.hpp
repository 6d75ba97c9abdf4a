// SPDX-License-Identifier: Apache-2.0
// How the messenger reports a request that is over.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::mpi {

struct Completion {
  void* context = nullptr;
  std::uint64_t flags = 0;  ///< FI_SEND, FI_RECV, FI_MSG, FI_TAGGED, FI_REMOTE_CQ_DATA, FI_MULTI_RECV ...
  std::uint64_t bytes = 0;  ///< of the message that were placed; for a peek, the length of the message
  void* buffer = nullptr;
  std::uint64_t data = 0;
  std::uint64_t tag = 0;
  std::uint64_t source = UINT64_MAX;
  std::uint64_t missing = 0;  ///< bytes of the message beyond the end of the buffer
  int error = 0;              ///< 0 or a positive FI_E value
  bool wanted = true;         ///< report it even with FI_SELECTIVE_COMPLETION; errors always are
};

class Reporter {
 public:
  virtual void sent(const Completion& completion) = 0;
  virtual void received(const Completion& completion) = 0;
  /// A peer's one-sided operation was carried out here: FI_REMOTE_READ or FI_REMOTE_WRITE. It is wanted if it has data.
  virtual void accessed(const Completion& /*completion*/) {}

 protected:
  ~Reporter() = default;
};

}  // namespace wherry::mpi
