// SPDX-License-Identifier: Apache-2.0
// fi_av(3). An address is an index into the vector, for every type of vector.
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "adapters/mpi/messenger/name.hpp"
#include "domain.hpp"

namespace wherry::mpi {

class Endpoint;

class AddressVector : public fid_av {
 public:
  AddressVector(Domain& domain, void* context);
  AddressVector(const AddressVector&) = delete;
  AddressVector& operator=(const AddressVector&) = delete;
  ~AddressVector();

  static AddressVector& of(fid_t handle);
  static int open(Domain& domain, const fi_av_attr* attributes, void* context, fid_av** vector);

  int insert(const void* names, std::size_t count, fi_addr_t* addresses, std::uint64_t flags, void* context);
  int remove(const fi_addr_t* addresses, std::size_t count);
  int lookup(fi_addr_t address, void* name, std::size_t* bytes);
  int close();

  /// The caller holds the domain's lock. Returns null if there is no such address.
  [[nodiscard]] const Name* find(fi_addr_t address) const;
  void bind(Endpoint& endpoint);
  void unbind(Endpoint& endpoint);
  [[nodiscard]] std::size_t size() const { return names_.size(); }

 private:
  fi_addr_t add(const void* bytes);

  Domain& domain_;
  std::vector<std::optional<Name>> names_;
  std::vector<Endpoint*> endpoints_;
};

}  // namespace wherry::mpi
