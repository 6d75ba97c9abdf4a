// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "adapters/mpi/provider/topology.h"
#include "list.hpp"
#include "mpi.hpp"

namespace wherry::topology {

using Neighbour = wherry_fi_neighbour;

/// The ranks that send to this one as the communicator's topology has it, by rank, each once, without this one: along
/// every dimension of a Cartesian grid, along the edges of a graph, and the sources of a distributed graph with their
/// weights. A source with weight 0 is left out. Two edges from one rank count as one with the sum of their weights.
/// Local: no other process takes part. False for want of memory; without a topology there are none.
bool neighbours_of(const Mpi& mpi, Word communicator, List<Neighbour>& neighbours) noexcept;

}  // namespace wherry::topology
