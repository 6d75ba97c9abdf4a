// SPDX-License-Identifier: Apache-2.0
//
// wherry run: starts a program with its own node number and any other option of the configuration table. If they are
// installed, the program also gets the libzmq and the ROOT library that support wherry://, and the library that reads
// files in place.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "commands.hpp"
#include "common/files_library.hpp"
#include "common/root_library.hpp"
#include "common/zmq_library.hpp"
#include "run/exit_status.hpp"
#include "run/files.hpp"
#include "run/loader.hpp"
#include "run/zmq_advice.hpp"

namespace wherry::tools {
namespace {

using Values = std::map<config::Key, std::string>;

void set_environment(const Values& values) {
  for (const auto& [key, value] : values) {
    setenv(std::string(config::option(key).environment).c_str(), value.c_str(), 1);
    config::check(key);
  }
}

// Replaces this process, so that the exit status, the signals and the process id are those of the program.
int execute(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  fmt::print(stderr, "wherry run: cannot run {}: {}\n", printable(words[0]), std::strerror(error));
  return status_of_exec(error);
}

struct Libraries {
  bool no_zmq = false;
  bool no_root = false;
};

// Puts the libzmq that supports wherry:// before the program's own, and prints the consequences for the user.
void replace_zmq(const Values& values, bool refused, const std::string& program) {
  const auto library = refused ? std::nullopt : find_zmq_library();
  if (!library) {
    if (!values.contains(config::Key::zmq)) return;
    throw Error(ENOENT, "use --zmq", refused ? "--no-zmq" : zmq_library_place().string(),
                refused ? "leave out one of the two" : "install libzmq beside this program (make zmq)");
  }
  if (log::enabled(log::Level::warning)) {
    for (const std::string& line : zmq_advice(find_program(program), *library)) {
      fmt::print(stderr, "wherry run: {}\n", printable(line));
    }
  }
  use_zmq_library();
}

int run(Values values, const Libraries& libraries, std::vector<std::string> words) {
  try {
    if (const auto files = values.find(config::Key::files); files != values.end()) {
      files->second = directory_list(files->second);
    }
    set_environment(values);
    if (const auto word = libraries.no_root ? std::nullopt : merged_by_root(words)) {
      fmt::print(stderr,
                 "wherry run: {}: pmerge is for ROOT's own server; write wherry://NODE:PORT//PATH without it for a "
                 "file of wherry-merge, or start the program anyway with --no-root\n",
                 printable(*word));
      return kStartFailed;
    }
    replace_zmq(values, libraries.no_zmq, words.front());
    if (const auto folder = libraries.no_root ? std::nullopt : find_root_folder()) use_root_folder(*folder);
    if (config::is_set(config::Key::files)) serve_files(words.front());
  } catch (const Error& error) {
    fmt::print(stderr, "wherry run: {}\n", printable(error.what()));
    return kStartFailed;
  }
  return execute(std::move(words));
}

// connect_timeout is --connect-timeout on the command line.
std::string flag_of(const config::Option& option) {
  std::string flag = "--" + std::string(option.name);
  for (char& c : flag) {
    if (c == '_') c = '-';
  }
  return flag;
}

}  // namespace

Action add_run(CLI::App& command) {
  auto values = std::make_shared<Values>();
  for (const config::Option& option : config::options()) {
    const auto store = [values, key = option.key](const std::string& value) { (*values)[key] = value; };
    const std::string unit = option.unit.empty() ? "" : fmt::format(", in {}", option.unit);
    command.add_option_function<std::string>(flag_of(option), store,
                                             fmt::format("Set {}: {}{}", option.environment, option.help, unit));
  }
  auto libraries = std::make_shared<Libraries>();
  command.add_flag("--no-zmq", libraries->no_zmq,
                   "Do not change LD_PRELOAD. Without this option the program uses the libzmq that supports wherry://, "
                   "if it is installed (docs/zmq.md)");
  command.add_flag("--no-root", libraries->no_root,
                   "Do not change ROOT's variables. Without this option TFile::Open supports wherry://, if the adapter "
                   "for ROOT is installed (docs/root.md)");
  auto words = std::make_shared<std::vector<std::string>>();
  command
      .add_option("PROGRAM", *words, "The program and its arguments; write -- before it if one of them begins with -")
      ->required();
  command.footer(
      "Exit status: the program's own; 125 if an option is invalid; 126 if the program cannot be executed; 127 if it "
      "is not\n"
      "found.");
  return [values, libraries, words] { return run(*values, *libraries, *words); };
}

}  // namespace wherry::tools
