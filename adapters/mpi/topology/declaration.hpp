// SPDX-License-Identifier: Apache-2.0
//
// What a communicator with a topology declares to the provider, for as long as it lives. An attribute of the
// communicator holds it: MPI calls back when the communicator is duplicated, by whichever call and from whichever
// language, and when it is freed or disconnected. So none of those calls needs a wrapper.
#pragma once

#include "mpi.hpp"

namespace wherry::topology {

/// Declares the neighbours of a new communicator, unless it has processes of another MPI_COMM_WORLD. Collective over
/// it: every process of the communicator takes part, also one without the provider, since none can know that of the
/// others. A failure costs the layout only: the communicator is as MPI made it. Ends the process if it has no memory
/// for the table of names, without which the others would wait.
void declare(const Mpi& mpi, Word communicator) noexcept;

}  // namespace wherry::topology
