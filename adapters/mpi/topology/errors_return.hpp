// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mpi.hpp"

namespace wherry::topology {

/// While it exists, a failed call on the communicator returns its error. The program's own error handler, by default
/// MPI_ERRORS_ARE_FATAL, would end the program. The destructor restores that handler. Only for a communicator that no
/// other thread knows yet.
class ErrorsReturn {
 public:
  ErrorsReturn(const Mpi& mpi, Word communicator) noexcept : mpi_(mpi), communicator_(communicator) {
    is_set_ = mpi.comm_get_errhandler(communicator, &programs_) == kSuccess &&
              mpi.comm_set_errhandler(communicator, mpi.errors_return()) == kSuccess;
  }
  ErrorsReturn(const ErrorsReturn&) = delete;
  ErrorsReturn& operator=(const ErrorsReturn&) = delete;
  ~ErrorsReturn() {
    if (!is_set_) return;
    (void)mpi_.comm_set_errhandler(communicator_, mpi_.handle_at(&programs_));
    (void)mpi_.errhandler_free(&programs_);
  }

 private:
  const Mpi& mpi_;
  const Word communicator_;
  Word programs_ = 0;  ///< a handle, as MPI stores it
  bool is_set_ = false;
};

}  // namespace wherry::topology
