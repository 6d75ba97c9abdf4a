// SPDX-License-Identifier: Apache-2.0
//
// Hosts in the notation of MPI launchers. All must be this machine, because Wherry moves MPI messages between processes
// of one machine.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::tools {

struct Host {
  std::string name;
  int slots = 1;  ///< the number of its processes: slots=N of Open MPI, :N of MPICH; 1 if neither is given
  int line = 0;   ///< line number in the file; 0 in a list
};

/// Reads a hostfile of Open MPI or MPICH, without its comments. Throws Error if the file cannot be read, and UsageError
/// if a count in it is not a number.
std::vector<Host> read_hostfile(const std::filesystem::path& file);

/// Parses a list of --host, such as a:2,b.
std::vector<Host> hosts_of_list(const std::string& list);

/// `own` is the name of this machine. A domain counts only if both names have one.
bool is_this_machine(std::string_view name, std::string_view own);

/// Returns the sum of the slots. Throws UsageError if a host is not this machine, whose name is `own`. `source` names
/// the option in the error, such as "--hostfile h".
int slots_of(const std::vector<Host>& hosts, std::string_view own, const std::string& source);

/// The name of this machine.
std::string own_host_name();

}  // namespace wherry::tools
