// SPDX-License-Identifier: Apache-2.0
//
// How a subcommand joins the program: write tools/NAME.cc with a function `Action add_NAME(CLI::App& command)`, declare
// it here, and give it a row in the table of main.cc. Nothing else knows it.
#pragma once

#include <CLI/CLI.hpp>

#include "manual/program.hpp"

namespace wherry::tools {

using manual::Action;

// Each declares the options of its subcommand on `command` and returns the action that reads them. Where the options
// are stored must outlive this call: a std::shared_ptr captured by the action does.
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
