// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "adapters/mpi/provider/topology.h"
#include "list.hpp"
#include "mpi.hpp"

namespace wherry::topology {

using Neighbour = wherry_fi_neighbour;

/// What a call gives the communicator that it makes.
enum class Topology : std::uint8_t {
  grid,   ///< MPI_Cart_create, MPI_Cart_sub
  graph,  ///< MPI_Graph_create
  edges,  ///< MPI_Dist_graph_create, MPI_Dist_graph_create_adjacent
};

/// The ranks that send to this one by the communicator's topology, sorted, each once, without this one: along every
/// dimension of a Cartesian grid, along the edges of a graph, and the sources of a distributed graph with their
/// weights. A source with weight 0 is left out. Two edges from one rank count as one with the sum of their weights.
/// Local: no other process takes part. Returns false if memory is short. If MPI refuses an inquiry there are no
/// neighbours; the communicator's error handler should be MPI_ERRORS_RETURN (ErrorsReturn).
///
/// The kind is not asked of MPI: for a distributed graph on a Cartesian communicator MPI_Topo_test of Open MPI 5.0
/// returns MPI_CART, and MPI_Cartdim_get then crashes.
bool neighbours_of(const Mpi& mpi, Word communicator, Topology kind, List<Neighbour>& neighbours) noexcept;

}  // namespace wherry::topology
