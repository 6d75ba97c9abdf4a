// SPDX-License-Identifier: Apache-2.0
//
// wherry mount: reads the command line and becomes wherry-mount (src/file/mount/program), which needs libfuse.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <wherry/error.hpp>

#include "base/config.hpp"
#include "commands.hpp"
#include "common/environment.hpp"

namespace wherry::tools {
namespace {

constexpr const char* kMountProgram = "wherry-mount";

struct MountWords {
  std::string address;
  std::string directory;
  std::string log;
  double timeout = 60;  ///< seconds
  int threads = 8;
  int connections = 4;
  std::string write_buffer = "64M";
  bool read_only = false;
  bool allow_other = false;
  bool no_passthrough = false;
  bool daemon = false;
  bool quiet = false;
};

/// Beside this program in a build, in lib/wherry/mount when installed.
std::filesystem::path find_mount_program() {
  std::error_code ignored;
  std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / kMountProgram;
  if (std::filesystem::exists(beside, ignored)) return beside;
  std::filesystem::path installed = library_folder() / "mount" / kMountProgram;
  if (std::filesystem::exists(installed, ignored)) return installed;
  throw Error(ENOENT, "start", installed.string(),
              "it is built where libfuse3 is found: apt-get install libfuse3-dev, then build and install again");
}

/// Empty: the text is a size; otherwise what is wrong with it.
std::string problem_of(const std::string& text) {
  try {
    (void)config::parse_bytes("--write-buffer", text);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

int become_mount_program(const MountWords& words) {
  const auto switched = [](bool on) { return std::string(on ? "1" : "0"); };
  const auto milliseconds = static_cast<long>(words.timeout * 1000);
  const std::filesystem::path program = find_mount_program();
  std::vector<std::string> texts{
      program.string(),
      "address=" + words.address,
      "directory=" + words.directory,
      "log=" + words.log,
      "timeout-ms=" + std::to_string(milliseconds),
      "threads=" + std::to_string(words.threads),
      "connections=" + std::to_string(words.connections),
      "write-buffer=" + std::to_string(config::parse_bytes("--write-buffer", words.write_buffer)),
      "read-only=" + switched(words.read_only),
      "allow-other=" + switched(words.allow_other),
      "passthrough=" + switched(!words.no_passthrough),
      "daemon=" + switched(words.daemon),
      "quiet=" + switched(words.quiet)};
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  throw Error(errno, "start", program.string(), "install it again (make install)");
}

}  // namespace

Action add_mount(CLI::App& command) {
  const auto words = std::make_shared<MountWords>();
  const CLI::Validator size(problem_of, "SIZE");
  command.footer(
      "Any program works on the files below the directory: they are the server's. Kept here are pages that were read, "
      "and\n"
      "writes to files that nobody else has open, until somebody opens them. A read sees what any client wrote before "
      "it began. Without root, fusermount3 is needed "
      "(Debian:\n"
      "fuse3). SIGINT and SIGTERM unmount, as umount and fusermount3 -u do. Its daemon runs beside\n"
      "it; one that is killed is replaced (Linux 6.9). What a mount left that was killed as a whole is detached by the "
      "next\n"
      "one on the same directory.\n"
      "Exit status: 0 if it was unmounted, or with --daemon if the mount answers; 1 if it failed; 2 if the command "
      "line\n"
      "is wrong.");
  command.add_option("address", words->address, "What wherry serve listens on: wherry://NODE:PORT")->required();
  command.add_option("directory", words->directory, "Where to mount; what is in it is hidden meanwhile")->required();
  command.add_flag("-d,--daemon", words->daemon, "Return when the mount answers, and serve it in the background");
  command.add_flag("--read-only", words->read_only, "Nothing can be changed through this mount");
  command.add_flag("--allow-other", words->allow_other,
                   "Processes of other users may use it, as the files' owners and modes allow; without root, "
                   "/etc/fuse.conf must have user_allow_other");
  command.add_flag("--no-passthrough", words->no_passthrough,
                   "Ask the server for names and move data through this program, also where it could reach the "
                   "server's files itself");
  command.add_option("--log", words->log, "Append to this file what goes wrong once the mount answers");
  command
      .add_option("--timeout", words->timeout,
                  "Seconds that calls wait for a server that is gone before they fail with EIO")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command.add_option("-t,--threads", words->threads, "Calls that are served at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      .add_option("--connections", words->connections,
                  "Connections to the server; a call that takes long holds up the other files of its own")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      .add_option("--write-buffer", words->write_buffer,
                  "Memory for writes that programs need not wait for; 0: each write waits for the server")
      ->check(size)
      ->capture_default_str();
  command.add_flag("-q,--quiet", words->quiet, "Say nothing unless something goes wrong");
  return [words] { return become_mount_program(*words); };
}

}  // namespace wherry::tools
