// SPDX-License-Identifier: Apache-2.0
// A daemon is killed at each point of a call, and the next one gets the same request.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "file/mount/file_system.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file::mount {
namespace {

namespace fs = std::filesystem;

/// The nodes of the names that the mounts below have looked up.
constexpr NodeId kOne = kRootNode + 1;
constexpr NodeId kOther = kRootNode + 2;
constexpr std::uint64_t kRequest = 77;

struct Call {
  const char* name;
  std::function<int(FileSystem&)> call;          ///< 0 or an errno value
  std::function<bool(const fs::path&)> is_done;  ///< once
};

int open_file(FileSystem& system, NodeId node, int flags, OpenFile*& file) {
  file = system.files().find(1);  // opened by the daemon before
  return file != nullptr ? 0 : system.files().open(node, flags, file);
}

bool is_same(const fs::path& one, const fs::path& other) { return fs::equivalent(one, other); }

std::string text_of(const fs::path& path) { return content_of(path); }

const std::vector<Call>& calls() {
  static const std::vector<Call> all{
      {"CreateExclusively",
       [](FileSystem& system) {
         Entry entry;
         OpenFile* file = nullptr;
         const int error = system.files().create(kRootNode, "new", 0644, O_RDWR | O_CREAT | O_EXCL, entry, file);
         return error != 0 ? error : file->file().use()->write(file->file().handle(), 0, as_data("text")).error;
       },
       [](const fs::path& root) { return text_of(root / "new") == "text"; }},
      {"MakeFile",
       [](FileSystem& system) {
         Entry entry;
         return system.names().make_file(kRootNode, "new", S_IFREG | 0644, entry);
       },
       [](const fs::path& root) { return fs::is_regular_file(root / "new"); }},
      {"MakeFifo",
       [](FileSystem& system) {
         Entry entry;
         return system.names().make_file(kRootNode, "new", S_IFIFO | 0644, entry);
       },
       [](const fs::path& root) { return fs::is_fifo(root / "new"); }},
      {"MakeDirectory",
       [](FileSystem& system) {
         Entry entry;
         return system.names().make_directory(kRootNode, "new", 0755, entry);
       },
       [](const fs::path& root) { return fs::is_directory(root / "new"); }},
      {"Symlink",
       [](FileSystem& system) {
         Entry entry;
         return system.names().symlink(kRootNode, "new", "target", entry);
       },
       [](const fs::path& root) { return fs::read_symlink(root / "new") == "target"; }},
      {"Link",
       [](FileSystem& system) {
         Entry entry;
         return system.names().link(kOne, kRootNode, "new", entry);
       },
       [](const fs::path& root) { return is_same(root / "one", root / "new"); }},
      {"Remove", [](FileSystem& system) { return system.names().remove(kRootNode, "one", false); },
       [](const fs::path& root) { return !fs::exists(root / "one"); }},
      {"RemoveDirectory", [](FileSystem& system) { return system.names().remove(kRootNode, "folder", true); },
       [](const fs::path& root) { return !fs::exists(root / "folder"); }},
      {"Rename", [](FileSystem& system) { return system.names().rename(kRootNode, "one", kRootNode, "new", 0); },
       [](const fs::path& root) { return text_of(root / "new") == "one" && !fs::exists(root / "one"); }},
      {"RenameOver", [](FileSystem& system) { return system.names().rename(kRootNode, "one", kRootNode, "other", 0); },
       [](const fs::path& root) { return text_of(root / "other") == "one" && !fs::exists(root / "one"); }},
      {"Exchange",
       [](FileSystem& system) { return system.names().rename(kRootNode, "one", kRootNode, "other", RENAME_EXCHANGE); },
       [](const fs::path& root) { return text_of(root / "other") == "one" && text_of(root / "one") == "other"; }},
      {"Append",
       [](FileSystem& system) {
         OpenFile* file = nullptr;
         if (const int error = open_file(system, kOne, O_WRONLY | O_APPEND, file); error != 0) return error;
         return system.files().write(kOne, *file, 0, as_data("+more"), OpenFiles::Write::at_the_end).error;
       },
       [](const fs::path& root) { return text_of(root / "one") == "one+more"; }},
      {"SetXattr",
       [](FileSystem& system) {
         return system.attributes().set_xattr(kOther, "user.new", as_data("v"), layout::kFileXattrCreate);
       },
       [](const fs::path&) { return true; }},
  };
  return all;
}

struct RepeatedCalls : testing::TestWithParam<std::tuple<std::size_t, FaultPoint>> {
  [[nodiscard]] const Call& call() const { return calls()[std::get<0>(GetParam())]; }

  void make_files() const {
    for (const auto& entry : fs::directory_iterator(served.root())) fs::remove_all(entry);
    for (const char* const name : {"one", "other"}) std::ofstream(served.root() / name) << name;
    fs::create_directory(served.root() / "folder");
  }
  [[nodiscard]] HostOptions options(AtFaultPoint at, std::uint64_t daemon) const {
    HostOptions made = served.client(std::move(at));
    made.process = {.client = 5, .number = daemon};
    return made;
  }
  /// Runs a process that is killed the `time`-th time at the point, or at the end. Returns whether it reached the
  /// point.
  [[nodiscard]] bool is_killed_at_point(const UniqueFd& memory, int time) const {
    const pid_t child = ::fork();
    if (child == 0) {
      FaultPlan plan;
      KeptState state(memory);
      FileSystem system(options(plan.at(), 1), 2, WriteBuffer::make(0), {.state = &state});
      Entry entry;
      for (const char* const name : {"one", "other", "folder"}) {
        if (system.names().look_up(kRootNode, name, entry) != 0) ::_exit(2);
      }
      served_request() = {.number = kRequest};
      plan.kill_at(std::get<1>(GetParam()), time);
      if (call().call(system) != 0) ::_exit(3);
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 1) << status;
    return WIFSIGNALED(status);
  }
  ServedDirectory served;
};

TEST_P(RepeatedCalls, AreDoneOnceWhereverTheDaemonIsKilled) {
  for (int time = 1; time < 20; ++time) {
    make_files();
    const UniqueFd memory = KeptState::make_memory();
    const bool killed = is_killed_at_point(memory, time);
    KeptState state(memory);
    KeptDescriptors none;
    const KeptSnapshot left = state.load();
    FileSystem system(options({}, 2), 2, WriteBuffer::make(0), {.state = &state, .descriptors = &none, .left = &left});
    served_request() = {.number = kRequest, .repeated = true};
    EXPECT_EQ(call().call(system), 0) << time;
    system.tree().attempts().end();
    EXPECT_TRUE(call().is_done(served.root())) << time;
    if (!killed) return;
  }
  FAIL() << "no end of points";
}

INSTANTIATE_TEST_SUITE_P(Files, RepeatedCalls,
                         testing::Combine(testing::Range(std::size_t{0}, calls().size()),
                                          testing::Values(FaultPoint::request_sent, FaultPoint::answer_begun)),
                         [](const auto& test) {
                           return std::string(calls()[std::get<0>(test.param)].name) +
                                  (std::get<1>(test.param) == FaultPoint::request_sent ? "Sent" : "Answered");
                         });

struct RepeatedRemovals : RepeatedCalls {};

TEST_P(RepeatedRemovals, LeaveWhatOthersHaveMadeMeanwhile) {
  for (int time = 1; time < 20; ++time) {
    make_files();
    const UniqueFd memory = KeptState::make_memory();
    const bool killed = is_killed_at_point(memory, time);
    const bool is_removed = !fs::exists(served.root() / "one");
    if (is_removed) std::ofstream(served.root() / "one") << "new";
    KeptState state(memory);
    KeptDescriptors none;
    const KeptSnapshot left = state.load();
    FileSystem system(options({}, 2), 2, WriteBuffer::make(0), {.state = &state, .descriptors = &none, .left = &left});
    served_request() = {.number = kRequest, .repeated = true};
    EXPECT_EQ(call().call(system), 0) << time;
    system.tree().attempts().end();
    EXPECT_EQ(text_of(served.root() / "one"), is_removed ? "new" : "") << time;
    if (!killed) return;
  }
  FAIL() << "no end of points";
}

std::size_t number_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(calls(), name, &Call::name) - calls().begin());
}

INSTANTIATE_TEST_SUITE_P(Files, RepeatedRemovals,
                         testing::Combine(testing::Values(number_of("Remove")),
                                          testing::Values(FaultPoint::request_sent, FaultPoint::answer_begun)));

}  // namespace
}  // namespace wherry::file::mount
