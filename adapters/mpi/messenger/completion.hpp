// SPDX-License-Identifier: Apache-2.0
// What the messenger tells of requests that are over.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::mpi {

struct Completion {
  void* context = nullptr;
  std::uint64_t flags = 0;  ///< FI_SEND, FI_RECV, FI_MSG, FI_TAGGED, FI_REMOTE_CQ_DATA, FI_MULTI_RECV ...
  std::uint64_t bytes = 0;  ///< of the message that were placed; for a peek all of it
  void* buffer = nullptr;
  std::uint64_t data = 0;
  std::uint64_t tag = 0;
  std::uint64_t source = UINT64_MAX;
  std::uint64_t missing = 0;  ///< bytes that found no place
  int error = 0;              ///< 0 or a positive FI_E value
  bool wanted = true;         ///< to be reported even where completions are selected, errors always
};

class Reporter {
 public:
  virtual void sent(const Completion& completion) = 0;
  virtual void received(const Completion& completion) = 0;
  /// A peer's one-sided operation was carried out here: FI_REMOTE_READ or FI_REMOTE_WRITE. Wanted: it brings data.
  virtual void accessed(const Completion& /*completion*/) {}

 protected:
  ~Reporter() = default;
};

}  // namespace wherry::mpi
