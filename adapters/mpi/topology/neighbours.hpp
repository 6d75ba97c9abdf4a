// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "adapters/mpi/provider/topology.h"
#include "list.hpp"
#include "mpi.hpp"

namespace wherry::topology {

using Neighbour = wherry_fi_neighbour;

/// The kind of topology that a call gives to the communicator it makes.
enum class Topology : std::uint8_t {
  grid,   ///< MPI_Cart_create, MPI_Cart_sub
  graph,  ///< MPI_Graph_create
  edges,  ///< MPI_Dist_graph_create, MPI_Dist_graph_create_adjacent
};

/// Appends the ranks that send to this one by the communicator's topology: sorted, each once, without this one. For a
/// Cartesian grid these are the neighbours along every dimension, for a graph those along the edges. For a distributed
/// graph they are the sources with their weights. A source with weight 0 is left out. Two edges from one rank count as
/// one with the sum of their weights. Local: no other process takes part. Returns false if the neighbours are not
/// known: MPI refuses an inquiry, or memory is short. The communicator's error handler should be MPI_ERRORS_RETURN
/// (ErrorsReturn).
///
/// MPI is not asked for the kind: for a distributed graph on a Cartesian communicator MPI_Topo_test of Open MPI 5.0
/// returns MPI_CART, and MPI_Cartdim_get then crashes.
bool neighbours_of(const Mpi& mpi, Word communicator, Topology kind, List<Neighbour>& neighbours) noexcept;

}  // namespace wherry::topology
