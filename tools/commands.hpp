// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `wherry`. To add one: write tools/NAME.cc with a function `Action add_NAME(CLI::App& command)`,
// declare it here, and add a row to the table in main.cc.
#pragma once

#include <CLI/CLI.hpp>

#include "manual/program.hpp"

namespace wherry::tools {

using manual::Action;

// Each function declares the options of its subcommand on `command`, and returns the action that reads them. The
// storage of the options must outlive the call: use a std::shared_ptr captured by the action.
Action add_bench(CLI::App& command);
Action add_collect(CLI::App& command);
Action add_config(CLI::App& command);
Action add_doctor(CLI::App& command);
Action add_key(CLI::App& command);
Action add_mount(CLI::App& command);
Action add_mpirun(CLI::App& command);
Action add_pipe(CLI::App& command);
Action add_run(CLI::App& command);
Action add_serve(CLI::App& command);
Action add_ship(CLI::App& command);
Action add_top(CLI::App& command);

}  // namespace wherry::tools
