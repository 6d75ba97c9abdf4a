// SPDX-License-Identifier: Apache-2.0
//
// wherry bench: starts wherry-bench, a separate component (bench/program), with the same arguments.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "commands.hpp"
#include "common/environment.hpp"

namespace wherry::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "wherry-bench";

/// Beside this program in a build, in lib/wherry/bench when installed.
fs::path find_bench() {
  std::error_code ignored;
  fs::path beside = fs::read_symlink("/proc/self/exe", ignored).parent_path() / kProgram;
  if (fs::exists(beside, ignored)) return beside;
  fs::path installed = library_folder() / "bench" / kProgram;
  if (fs::exists(installed, ignored)) return installed;
  throw std::runtime_error(installed.string() +
                           " is missing: install the benchmarks, in the source tree, with: make bench-install PREFIX=" +
                           beside.parent_path().parent_path().string());
}

int execute(const fs::path& program, std::vector<std::string> words) {
  words.insert(words.begin(), program.string());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  throw std::system_error(errno, std::system_category(), "cannot run " + program.string());
}

}  // namespace

Action add_bench(CLI::App& command) {
  // All words are passed to wherry-bench, --help too.
  command.set_help_flag();
  command.prefix_command();
  return [&command] { return execute(find_bench(), command.remaining()); };
}

}  // namespace wherry::tools
