// SPDX-License-Identifier: Apache-2.0
#include "bench/program/plot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "base/printable.hpp"
#include "bench/harness/programs/folders.hpp"

namespace wherry::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScript = "report.py";

fs::path existing(fs::path script) {
  std::error_code ignored;
  if (fs::exists(script, ignored)) return script;
  throw std::runtime_error(script.string() +
                           " is missing: WHERRY_BENCH_REPORT must name the folder bench/report of a checkout");
}

fs::path find_script() {
  if (const char* named = std::getenv("WHERRY_BENCH_REPORT"); named != nullptr && *named != '\0') {
    return existing(fs::path(named) / kScript);
  }
  std::error_code ignored;
  const fs::path here = installation();
  fs::path installed = here / "share" / "wherry" / "bench" / "report" / kScript;
  if (fs::exists(installed, ignored)) return installed;
  for (fs::path folder = here; folder != folder.root_path(); folder = folder.parent_path()) {
    fs::path script = folder / "bench" / "report" / kScript;
    if (fs::exists(script, ignored)) return script;
  }
  throw std::runtime_error(
      "no script to draw with: WHERRY_BENCH_REPORT must name the folder bench/report of a checkout");
}

/// The checkout's own Python, which has what the script needs, or the machine's.
std::string python_for(const fs::path& script) {
  std::error_code ignored;
  const fs::path own = script.parent_path().parent_path().parent_path() / ".venv" / "bin" / "python";
  return fs::exists(own, ignored) ? own.string() : "python3";
}

/// Starts a program, with its output dropped if it is `quiet`, and waits for it. Returns its exit status; -1: it was
/// killed.
int run(std::vector<std::string> command, bool quiet = false) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (quiet) {
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::system_category(), "--plot: cannot start " + command[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Removed at the end of the scope.
class TemporaryFile {
 public:
  TemporaryFile() : path_((fs::temp_directory_path() / "wherry-bench-XXXXXX.json").string()) {
    const int descriptor = ::mkstemps(path_.data(), 5);
    if (descriptor < 0) throw std::system_error(errno, std::system_category(), path_);
    ::close(descriptor);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

void check_writable(const char* option, const std::string& file) {
  std::error_code ignored;
  int error = 0;
  if (fs::is_directory(file, ignored)) {
    error = EISDIR;
  } else {
    // Of a new file its folder must allow it; "/." makes a folder that is a file an error.
    const bool is_there = fs::exists(file, ignored);
    const fs::path place = is_there ? fs::path(file) : fs::absolute(file).parent_path() / ".";
    if (::access(place.c_str(), is_there ? W_OK : W_OK | X_OK) != 0) error = errno;
  }
  if (error == 0) return;
  throw std::invalid_argument(
      fmt::format("{} {}: cannot write it: {}; name another file", option, printable(file), std::strerror(error)));
}

void check_drawing(const std::string& file) {
  check_writable("--plot", file);
  fs::path script;
  try {
    script = find_script();
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(fmt::format("--plot: {}", error.what()));
  }
  const std::string python = python_for(script);
  int status = 0;
  try {
    status = run({python, "-c", "import matplotlib"}, true);
  } catch (const std::system_error& error) {
    throw std::invalid_argument(fmt::format("{}; --plot needs Python 3 with matplotlib", error.what()));
  }
  if (status != 0) {
    throw std::invalid_argument(fmt::format(
        "--plot needs matplotlib, which {} does not have: install python3-matplotlib, or use --json and draw "
        "elsewhere",
        python));
  }
}

void draw(const std::string& file, const std::vector<Row>& rows, const nlohmann::json& run_facts) {
  const fs::path script = find_script();
  const TemporaryFile json;
  write_json(json.path(), rows, run_facts);
  // It says itself what is missing.
  if (run({python_for(script), script.string(), json.path(), "--to", file}) != 0) {
    throw std::runtime_error(fmt::format("could not draw {}", file));
  }
}

}  // namespace wherry::bench
