// SPDX-License-Identifier: Apache-2.0
//
// What a communicator with a topology declares to the provider, for as long as it lives. An attribute of the
// communicator holds it: MPI calls back when the communicator is duplicated, by whichever call and from whichever
// language, and when it is freed or disconnected. So none of those calls needs a wrapper.
#pragma once

#include "mpi.hpp"
#include "neighbours.hpp"

namespace wherry::topology {

/// How many calls that make a topology this thread is in. No attribute is copied meanwhile: Open MPI 5.0 copies those
/// of the old communicator in MPI_Dist_graph_create_adjacent, and the new one would have the neighbours of both.
inline thread_local int calls_in_progress = 0;

/// Declares the neighbours of a new communicator, unless it has processes of another MPI_COMM_WORLD. Collective over
/// it: every process of the communicator takes part, also one without the provider, since none can know that of the
/// others. After a failure of MPI nothing is declared: the communicator is as MPI made it, error handler and all. Ends
/// the process if it has no memory for the table of names, without which the others would wait.
void declare(const Mpi& mpi, Word communicator, Topology kind) noexcept;

}  // namespace wherry::topology
