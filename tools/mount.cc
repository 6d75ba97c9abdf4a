// SPDX-License-Identifier: Apache-2.0
//
// wherry mount: parses the command line and executes wherry-mount (src/file/mount/program), which needs libfuse.
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
              "install libfuse3 (apt-get install libfuse3-dev), then build and install again");
}

/// Returns the error of a size that is not valid. Empty: the text is a valid size.
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
      "Any program can use the files below the directory. The mount keeps pages that were read. It also keeps writes "
      "to files\n"
      "that no other client has open, until one opens them. A read returns all that any client wrote before the read "
      "began.\n"
      "Without root, fusermount3 is needed (Debian: fuse3). SIGINT and SIGTERM unmount, as umount and fusermount3 -u "
      "do.\n"
      "If the daemon is killed, it is replaced (Linux 6.9). If all processes of a mount are killed, the next mount on "
      "the\n"
      "same directory detaches it.\n"
      "Exit status: 0 if it was unmounted, or with --daemon if the mount answers; 1 if it failed; 2 if the command "
      "line is\n"
      "wrong.");
  command.add_option("address", words->address, "The address of the wherry serve: wherry://NODE:PORT")->required();
  command.add_option("directory", words->directory, "The directory to mount on; its own content is hidden meanwhile")
      ->required();
  command.add_flag("-d,--daemon", words->daemon, "Return when the mount answers, and serve it in the background");
  command.add_flag("--read-only", words->read_only, "Refuse all changes through this mount");
  command.add_flag("--allow-other", words->allow_other,
                   "Let other users' processes use it, as the files' owners and modes permit; without root, "
                   "/etc/fuse.conf must have user_allow_other");
  command.add_flag(
      "--no-passthrough", words->no_passthrough,
      "Look up names and move data through this program, even where it could reach the server's files directly");
  command.add_option("--log", words->log, "Append errors to this file once the mount answers");
  command
      .add_option("--timeout", words->timeout,
                  "Seconds that calls wait for a server that is gone before they fail with EIO")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command.add_option("-t,--threads", words->threads, "Threads that serve calls")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      .add_option("--connections", words->connections,
                  "Connections to the server; a slow call delays other calls on its connection")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      .add_option("--write-buffer", words->write_buffer,
                  "Memory for delayed writes; 0: each write waits for the server")
      ->check(size)
      ->capture_default_str();
  command.add_flag("-q,--quiet", words->quiet, "Print only errors");
  return [words] { return become_mount_program(*words); };
}

}  // namespace wherry::tools
