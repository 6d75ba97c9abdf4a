// SPDX-License-Identifier: Apache-2.0
//
// Hosts as launchers take them: all have to be this machine, since Wherry moves messages between processes of one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::tools {

struct Host {
  std::string name;
  int slots = 1;  ///< how many processes it takes: slots=N of Open MPI, :N of MPICH; 1 if the file has neither
  int line = 0;   ///< in its file; 0 in a list
};

/// The hosts of a hostfile of Open MPI or MPICH, without its comments. Throws Error if the file cannot be read, and
/// UsageError if a count in it is not a number.
std::vector<Host> read_hostfile(const std::filesystem::path& file);

/// The hosts of a list as --host takes it, a:2,b.
std::vector<Host> hosts_of_list(const std::string& list);

/// `own` is the name of this machine. A domain counts only if both names have one.
bool is_this_machine(std::string_view name, std::string_view own);

/// The sum of the slots. Throws UsageError if a host is another machine than the one named `own`. `source` names the
/// option in the error, as "--hostfile h".
int slots_of(const std::vector<Host>& hosts, std::string_view own, const std::string& source);

/// The name of this machine.
std::string own_host_name();

}  // namespace wherry::tools
