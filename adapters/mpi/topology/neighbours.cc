// SPDX-License-Identifier: Apache-2.0
#include "neighbours.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace wherry::topology {
namespace {

void push(List<Neighbour>& neighbours, int rank, int weight) noexcept {
  if (rank >= 0 && weight > 0) neighbours.push({static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(weight)});
}

bool push_grid(const Mpi& mpi, Word communicator, List<Neighbour>& neighbours) noexcept {
  int dimensions = 0;
  if (mpi.cartdim_get(communicator, &dimensions) != kSuccess) return false;
  for (int dimension = 0; dimension < dimensions; ++dimension) {
    int before = mpi.interface().no_process;
    int after = before;
    if (mpi.cart_shift(communicator, dimension, 1, &before, &after) != kSuccess) return false;
    for (const int rank : {before, after}) {
      if (rank != mpi.interface().no_process) push(neighbours, rank, 1);
    }
  }
  return true;
}

bool push_graph(const Mpi& mpi, Word communicator, int self, List<Neighbour>& neighbours) noexcept {
  int count = 0;
  if (mpi.graph_neighbors_count(communicator, self, &count) != kSuccess || count < 0) return false;
  List<int> ranks(static_cast<std::size_t>(count));
  if (!ranks.is_whole()) return false;
  if (mpi.graph_neighbors(communicator, self, count, ranks.elements().data()) != kSuccess) return false;
  for (const int rank : ranks.elements()) push(neighbours, rank, 1);
  return true;
}

bool push_sources(const Mpi& mpi, Word communicator, List<Neighbour>& neighbours) noexcept {
  int source_count = 0;
  int destination_count = 0;
  int weighted = 0;
  if (mpi.dist_graph_neighbors_count(communicator, &source_count, &destination_count, &weighted) != kSuccess) {
    return false;
  }
  List<int> sources(static_cast<std::size_t>(source_count));
  List<int> source_weights(static_cast<std::size_t>(source_count));
  List<int> destinations(static_cast<std::size_t>(destination_count));
  List<int> destination_weights(static_cast<std::size_t>(destination_count));
  if (!sources.is_whole() || !source_weights.is_whole() || !destinations.is_whole() ||
      !destination_weights.is_whole()) {
    return false;
  }
  if (mpi.dist_graph_neighbors(communicator, source_count, sources.elements().data(), source_weights.elements().data(),
                               destination_count, destinations.elements().data(),
                               destination_weights.elements().data()) != kSuccess) {
    return false;
  }
  for (std::size_t i = 0; i < sources.elements().size(); ++i) {
    push(neighbours, sources.elements()[i], weighted != 0 ? source_weights.elements()[i] : 1);
  }
  return true;
}

void merge(List<Neighbour>& neighbours, int self) noexcept {
  const std::span<Neighbour> all = neighbours.elements();
  std::sort(all.begin(), all.end(), [](const Neighbour& a, const Neighbour& b) { return a.rank < b.rank; });
  std::size_t kept = 0;
  for (const Neighbour& next : all) {
    if (next.rank == static_cast<std::uint32_t>(self)) continue;
    if (kept > 0 && all[kept - 1].rank == next.rank) {
      const std::uint64_t sum = std::uint64_t{all[kept - 1].weight} + next.weight;
      all[kept - 1].weight =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, std::numeric_limits<std::uint32_t>::max()));
    } else {
      all[kept++] = next;
    }
  }
  neighbours.shorten(kept);
}

}  // namespace

bool neighbours_of(const Mpi& mpi, Word communicator, Topology kind, List<Neighbour>& neighbours) noexcept {
  int self = 0;
  if (mpi.comm_rank(communicator, &self) != kSuccess) return false;
  bool is_known = false;
  switch (kind) {
    case Topology::grid:
      is_known = push_grid(mpi, communicator, neighbours);
      break;
    case Topology::graph:
      is_known = push_graph(mpi, communicator, self, neighbours);
      break;
    case Topology::edges:
      is_known = push_sources(mpi, communicator, neighbours);
      break;
  }
  merge(neighbours, self);
  return is_known && neighbours.is_whole();
}

}  // namespace wherry::topology
