// SPDX-License-Identifier: Apache-2.0
#include "address_vector.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "endpoint.hpp"
#include "objects.hpp"

namespace wherry::mpi {
namespace {

AddressVector& vector_of(fid_av* vector) { return *static_cast<AddressVector*>(vector); }

int close(fid_t handle) { return AddressVector::of(handle).close(); }

// Accepts an event queue, which is for asynchronous insertion; this provider inserts synchronously.
int bind(fid_t /*vector*/, fid_t other, std::uint64_t /*flags*/) {
  return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

int insert(fid_av* vector, const void* names, std::size_t count, fi_addr_t* addresses, std::uint64_t flags,
           void* context) {
  return vector_of(vector).insert(names, count, addresses, flags, context);
}

int remove(fid_av* vector, fi_addr_t* addresses, std::size_t count, std::uint64_t /*flags*/) {
  return vector_of(vector).remove(addresses, count);
}

int lookup(fid_av* vector, fi_addr_t address, void* name, std::size_t* bytes) {
  return vector_of(vector).lookup(address, name, bytes);
}

const char* straddr(fid_av* /*vector*/, const void* name, char* buffer, std::size_t* bytes) {
  const std::size_t room = *bytes;
  const auto* text = static_cast<const char*>(name);
  const int length = static_cast<int>(strnlen(text, kNameBytes - 1));
  *bytes = static_cast<std::size_t>(length) + 1;
  if (room > 0) std::snprintf(buffer, room, "%.*s", length, text);
  return buffer;
}

fi_ops object_operations() {
  fi_ops result = closable(close);
  result.bind = bind;
  return result;
}
fi_ops object_calls = object_operations();

fi_ops_av vector_operations() {
  fi_ops_av result{};
  result.size = sizeof(fi_ops_av);
  result.insert = insert;
  result.insertsvc = not_served<int>;
  result.insertsym = not_served<int>;
  result.remove = remove;
  result.lookup = lookup;
  result.straddr = straddr;
  result.av_set = not_served<int>;
  return result;
}
fi_ops_av own_calls = vector_operations();

}  // namespace

AddressVector::AddressVector(Domain& domain, void* context)
    : fid_av{{FI_CLASS_AV, context, &object_calls}, &own_calls}, domain_(domain) {
  ++domain_.users;
}

AddressVector::~AddressVector() { --domain_.users; }

AddressVector& AddressVector::of(fid_t handle) { return object_of<AddressVector, fid_av>(handle); }

int AddressVector::open(Domain& domain, const fi_av_attr* attributes, void* context, fid_av** vector) {
  if (attributes != nullptr && (attributes->name != nullptr || attributes->rx_ctx_bits != 0)) return -FI_ENOSYS;
  if (attributes != nullptr && (attributes->flags & ~std::uint64_t{FI_SYMMETRIC}) != 0) return -FI_ENOSYS;
  return guarded([&] {
    auto* made = new AddressVector(domain, context);
    if (attributes != nullptr) made->names_.reserve(std::min<std::size_t>(attributes->count, 1 << 16));
    *vector = made;
    return 0;
  });
}

int AddressVector::close() {
  if (!endpoints_.empty()) return -FI_EBUSY;
  delete this;
  return 0;
}

const Name* AddressVector::find(fi_addr_t address) const {
  return address < names_.size() && names_[address] ? &*names_[address] : nullptr;
}

void AddressVector::bind(Endpoint& endpoint) { endpoints_.push_back(&endpoint); }

void AddressVector::unbind(Endpoint& endpoint) { std::erase(endpoints_, &endpoint); }

// Returns FI_ADDR_NOTAVAIL if it is no name of this provider, or of an endpoint on another machine.
fi_addr_t AddressVector::add(const void* bytes) {
  const auto name = Name::parse_bytes(bytes);
  if (!name) return FI_ADDR_NOTAVAIL;
  if (!name->is_on_this_host()) {
    log::write(log::Level::error, "fi_av_insert " + name->text() +
                                      ": the endpoint is on another machine, in another network namespace, of another "
                                      "user, or from before the last boot; the provider wherry connects only endpoints "
                                      "that share all of these: run all ranks on one machine, in one container");
    return FI_ADDR_NOTAVAIL;
  }
  names_.emplace_back(name);
  for (Endpoint* endpoint : endpoints_) endpoint->inserted(names_.size() - 1, *name);
  return names_.size() - 1;
}

int AddressVector::insert(const void* names, std::size_t count, fi_addr_t* addresses, std::uint64_t flags,
                          void* context) {
  if ((flags & ~std::uint64_t{FI_MORE | FI_SYNC_ERR}) != 0) return -FI_EBADFLAGS;
  return guarded([&] {
    const std::lock_guard guard(domain_.lock());
    int inserted = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const fi_addr_t address = add(static_cast<const char*>(names) + i * kNameBytes);
      if (addresses != nullptr) addresses[i] = address;
      if ((flags & FI_SYNC_ERR) != 0) {
        static_cast<int*>(context)[i] = address == FI_ADDR_NOTAVAIL ? FI_EADDRNOTAVAIL : 0;
      }
      if (address != FI_ADDR_NOTAVAIL) ++inserted;
    }
    return inserted;
  });
}

int AddressVector::remove(const fi_addr_t* addresses, std::size_t count) {
  const std::lock_guard guard(domain_.lock());
  for (std::size_t i = 0; i < count; ++i) {
    if (find(addresses[i]) == nullptr) return -FI_EINVAL;
    names_[addresses[i]].reset();
    for (Endpoint* endpoint : endpoints_) endpoint->removed(addresses[i]);
  }
  return 0;
}

int AddressVector::lookup(fi_addr_t address, void* name, std::size_t* bytes) {
  const std::lock_guard guard(domain_.lock());
  const Name* found = find(address);
  if (found == nullptr) return -FI_EINVAL;
  const auto text = found->bytes();
  std::memcpy(name, text.data(), std::min(*bytes, text.size()));
  *bytes = text.size();
  return 0;
}

}  // namespace wherry::mpi
