// SPDX-License-Identifier: Apache-2.0
//
// The declaration of a communicator with a topology to the provider. It lives as long as the communicator, which has it
// as an attribute: MPI calls back when the communicator is duplicated, freed or disconnected, by any call and from any
// language. So none of those calls needs a wrapper.
#pragma once

#include "mpi.hpp"
#include "neighbours.hpp"

namespace wherry::topology {

/// Number of topology calls that this thread is in. Attributes are not copied meanwhile: Open MPI 5.0 copies those of
/// the old communicator in MPI_Dist_graph_create_adjacent, and the new one would have the neighbours of both.
inline thread_local int calls_in_progress = 0;

/// Declares the neighbours of a new communicator, unless it has processes of another MPI_COMM_WORLD. Collective: every
/// process of the communicator takes part, even without the provider, because none knows whether others have it. If
/// one of them has no memory for the table of names, none declares. If a call of MPI fails, nothing is declared; the
/// communicator and its error handler are as MPI made them.
void declare(const Mpi& mpi, Word communicator, Topology kind) noexcept;

}  // namespace wherry::topology
