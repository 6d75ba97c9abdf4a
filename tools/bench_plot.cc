// SPDX-License-Identifier: Apache-2.0
#include "bench_plot.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace wherry::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScript = "report.py";

fs::path find_script() {
  if (const char* named = std::getenv("WHERRY_BENCH_REPORT"); named != nullptr && *named != '\0') {
    return fs::path(named) / kScript;
  }
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  fs::path installed = here.parent_path() / "share" / "wherry" / "bench" / "report" / kScript;
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

int run(std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ);
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

void draw(const std::string& file, const std::vector<bench::Row>& rows, const nlohmann::json& run_facts) {
  const fs::path script = find_script();
  const TemporaryFile json;
  bench::write_json(json.path(), rows, run_facts);
  // It says itself what is missing.
  if (run({python_for(script), script.string(), json.path(), "--to", file}) != 0) {
    throw std::runtime_error(fmt::format("could not draw {}", file));
  }
}

}  // namespace wherry::tools
