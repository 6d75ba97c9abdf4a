// SPDX-License-Identifier: Apache-2.0
#include "declaration.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "errors_return.hpp"
#include "list.hpp"
#include "neighbours.hpp"
#include "provider.hpp"

namespace wherry::topology {
namespace {

struct Name {
  std::array<std::byte, WHERRY_FI_NAME_BYTES> bytes{};
};

/// Names and neighbours by rank. A duplicate has the same ranks, so all duplicates share it.
struct Table {
  explicit Table(std::size_t size) noexcept : names(size) {}

  List<Name> names;
  List<Neighbour> neighbours;
  std::atomic<std::uint32_t> users{1};
};

/// The value of the attribute. Each communicator has its own.
struct Declaration {
  Table* table;
  std::uint64_t communicator;  ///< its number in this process, never used again
};

std::atomic<std::uint64_t> communicators{0};

void release(Table* table) noexcept {
  if (table->users.fetch_sub(1) != 1) return;
  table->~Table();
  std::free(table);
}

template <class T, class... Arguments>
T* make(Arguments... arguments) noexcept {
  void* const place = std::malloc(sizeof(T));
  return place == nullptr ? nullptr : new (place) T{arguments...};
}

/// Returns null if memory is short. Otherwise the declaration holds one of the table's uses.
Declaration* declare_to_provider(Table* table) noexcept {
  const Provider provider;
  auto* const declaration = make<Declaration>(table, communicators.fetch_add(1) + 1);
  if (declaration == nullptr || !provider.is_there()) return declaration;
  const auto names = table->names.elements();
  const auto neighbours = table->neighbours.elements();
  (void)provider.topology(names.data(), sizeof(Name), names.size(), neighbours.data(), neighbours.size(),
                          declaration->communicator);
  return declaration;
}

int forget(Word, int, void* value, void*) noexcept {
  auto* const declaration = static_cast<Declaration*>(value);
  if (const Provider provider; provider.is_there()) (void)provider.forget(declaration->communicator);
  release(declaration->table);
  std::free(declaration);
  return kSuccess;
}

int duplicate(Word, int, void*, void* value, void* copy, int* is_copied) noexcept {
  *is_copied = 0;
  if (calls_in_progress > 0) return kSuccess;
  Table* const table = static_cast<Declaration*>(value)->table;
  Declaration* const declaration = declare_to_provider(table);
  if (declaration != nullptr) table->users.fetch_add(1);
  *static_cast<void**>(copy) = declaration;
  *is_copied = declaration == nullptr ? 0 : 1;
  return kSuccess;
}

/// Makes a key for this communicator and its duplicates alone, and frees it at once: MPI keeps it while they have it. A
/// key for all communicators would not survive MPI_Finalize, after which a program may begin MPI again (sessions).
void attach(const Mpi& mpi, Word communicator, Declaration* declaration) noexcept {
  int key = 0;
  int error = mpi.comm_create_keyval(duplicate, forget, &key, nullptr);
  if (error == kSuccess) {
    error = mpi.comm_set_attr(communicator, key, declaration);
    (void)mpi.comm_free_keyval(&key);
  }
  if (error != kSuccess) (void)forget(communicator, key, declaration, nullptr);
}

/// Whether all members were started together, so that all have this library. Processes that were spawned or have
/// connected may not have it, and would not take part in the exchange of names. All members get the same result: the
/// communicator lies within the world of all of them, or of none. A program without a world (sessions) counts as one
/// world. If MPI refuses an inquiry, this process takes part: the others would wait for it.
bool is_of_one_world(const Mpi& mpi, Word communicator) noexcept {
  int has_begun = 0;
  int has_ended = 0;
  if (mpi.initialized(&has_begun) != kSuccess || mpi.finalized(&has_ended) != kSuccess) return true;
  if (has_begun == 0 || has_ended != 0) return true;
  Word members = 0;
  Word world = 0;
  Word strangers = 0;
  int count = 0;
  if (mpi.comm_group(communicator, &members) != kSuccess) return true;
  if (mpi.comm_group(mpi.world(), &world) == kSuccess) {
    if (mpi.group_difference(mpi.handle_at(&members), mpi.handle_at(&world), &strangers) == kSuccess) {
      if (mpi.group_size(mpi.handle_at(&strangers), &count) != kSuccess) count = 0;
      (void)mpi.group_free(&strangers);
    }
    (void)mpi.group_free(&world);
  }
  (void)mpi.group_free(&members);
  return count == 0;
}

Name own_name() noexcept {
  Name name;
  const Provider provider;
  std::size_t bytes = name.bytes.size();
  if (!provider.is_there() || provider.self(name.bytes.data(), &bytes) != 0) return {};
  return name;
}

/// Returns null if memory is short, or MPI refuses an inquiry.
Table* table_for(const Mpi& mpi, Word communicator) noexcept {
  int size = 0;
  if (mpi.comm_size(communicator, &size) != kSuccess || size <= 0) return nullptr;
  auto* const table = make<Table>(static_cast<std::size_t>(size));
  if (table == nullptr || table->names.is_whole()) return table;
  release(table);
  return nullptr;
}

/// Whether all processes of the communicator can go on. Collective.
bool agree(const Mpi& mpi, Word communicator, bool can) noexcept {
  const unsigned char own = can ? 1 : 0;
  unsigned char all = 0;
  return mpi.allreduce(&own, &all, 1, mpi.byte(), mpi.bits_of_all(), communicator) == kSuccess && all != 0;
}

/// Fills the table. Collective. False: MPI has refused something, or memory is short.
bool fill(const Mpi& mpi, Word communicator, Topology kind, Table& table) noexcept {
  const Name own = own_name();
  return mpi.allgather(&own, sizeof own, mpi.byte(), table.names.elements().data(), sizeof own, mpi.byte(),
                       communicator) == kSuccess &&
         neighbours_of(mpi, communicator, kind, table.neighbours);
}

}  // namespace

void declare(const Mpi& mpi, Word communicator, Topology kind) noexcept {
  const ErrorsReturn errors_return(mpi, communicator);
  if (!is_of_one_world(mpi, communicator)) return;
  Table* const table = table_for(mpi, communicator);
  if (agree(mpi, communicator, table != nullptr) && fill(mpi, communicator, kind, *table) && Provider().is_there()) {
    if (Declaration* const declaration = declare_to_provider(table)) {
      attach(mpi, communicator, declaration);
      return;
    }
  }
  if (table != nullptr) release(table);
}

}  // namespace wherry::topology
