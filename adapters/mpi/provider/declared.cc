// SPDX-License-Identifier: Apache-2.0
#include "declared.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "objects.hpp"
#include "topology.h"

namespace wherry::mpi {

static_assert(kNameBytes == WHERRY_FI_NAME_BYTES);

Declared& Declared::instance() {
  static Declared declared;
  return declared;
}

void Declared::opened(Messenger& messenger) {
  const std::lock_guard guard(mutex_);
  messengers_.push_back(&messenger);
  declare_to_current();
}

void Declared::closed(Messenger& messenger) {
  const std::lock_guard guard(mutex_);
  std::erase(messengers_, &messenger);
  declare_to_current();
}

int Declared::self(void* name, std::size_t* bytes) {
  const std::lock_guard guard(mutex_);
  if (messengers_.empty()) return -FI_ENOTCONN;
  const std::size_t room = *bytes;
  *bytes = kNameBytes;
  if (room < kNameBytes) return -FI_ETOOSMALL;
  std::memcpy(name, messengers_.front()->name().bytes().data(), kNameBytes);
  return 0;
}

int Declared::declare(std::uint64_t communicator, std::vector<NeighbourName> neighbours) {
  const std::lock_guard guard(mutex_);
  if (messengers_.empty()) return -FI_ENOTCONN;
  communicators_[communicator] = std::move(neighbours);
  declare_to_current();
  return 0;
}

int Declared::forget(std::uint64_t communicator) {
  const std::lock_guard guard(mutex_);
  if (communicators_.erase(communicator) == 0) return -FI_ENOENT;
  declare_to_current();
  return 0;
}

// A neighbour in several communicators has the sum of its weights.
void Declared::declare_to_current() {
  if (messengers_.empty()) return;
  std::map<std::string, NeighbourName> all;
  for (const auto& [communicator, neighbours] : communicators_) {
    for (const NeighbourName& neighbour : neighbours) {
      NeighbourName& sum = all.try_emplace(neighbour.name.text(), NeighbourName{neighbour.name, 0}).first->second;
      sum.weight += std::min(neighbour.weight, UINT32_MAX - sum.weight);
    }
  }
  std::vector<NeighbourName> sums;
  for (const auto& [text, neighbour] : all) sums.push_back(neighbour);
  messengers_.front()->declare(std::move(sums));
}

namespace {

bool is_zero(const char* name) {
  return std::all_of(name, name + kNameBytes, [](char c) { return c == 0; });
}

// Returns nothing if a rank is beyond the table. Leaves out names of other builds, which cannot be neighbours.
std::optional<std::vector<NeighbourName>> read(const char* names, std::size_t count,
                                               std::span<const wherry_fi_neighbour> neighbours) {
  std::vector<NeighbourName> result;
  for (const wherry_fi_neighbour& neighbour : neighbours) {
    if (neighbour.rank >= count) return std::nullopt;
    const char* bytes = names + neighbour.rank * kNameBytes;
    const auto name = is_zero(bytes) ? std::nullopt : Name::parse_bytes(bytes);
    if (name) result.push_back({*name, std::max<std::uint32_t>(neighbour.weight, 1)});
  }
  return result;
}

}  // namespace
}  // namespace wherry::mpi

extern "C" {

__attribute__((visibility("default"))) int wherry_fi_self(void* name, size_t* bytes) {
  return wherry::mpi::Declared::instance().self(name, bytes);
}

__attribute__((visibility("default"))) int wherry_fi_topology(const void* names, size_t name_bytes, size_t count,
                                                              const wherry_fi_neighbour* neighbours,
                                                              size_t neighbour_count, uint64_t communicator) {
  using namespace wherry::mpi;
  if (name_bytes != kNameBytes) return -EINVAL;
  return guarded([&] {
    auto read_all = read(static_cast<const char*>(names), count, {neighbours, neighbour_count});
    return read_all ? Declared::instance().declare(communicator, std::move(*read_all)) : -EINVAL;
  });
}

__attribute__((visibility("default"))) int wherry_fi_forget(uint64_t communicator) {
  using namespace wherry::mpi;
  return guarded([&] { return Declared::instance().forget(communicator); });
}
}
