// SPDX-License-Identifier: Apache-2.0
// `wherry bench file` with shell scripts in the place of its program: what is asked, and what becomes of the answers.
#include "bench/systems/file/systems.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/scoped_environment.hpp"
#include "bench/questions/file/question.hpp"
#include "bench/systems/file/content.hpp"
#include "bench/systems/file/files.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::bench::file {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FileSystems : public ::testing::Test {
 protected:
  FileSystems() : named_("WHERRY_BENCH_FILE", folder_.path().c_str()) {}

  /// A program that keeps each job, and answers it with what `result` prints.
  void write(const std::string& result, const char* name = "wherry-bench-file") {
    const fs::path path = folder_.path() / name;
    std::ofstream(path) << "#!/bin/bash\n[[ $1 == check ]] && exit\necho processes $$\necho version\n"
                        << "while read -r word job; do [[ $word == end ]] && exit\n"
                        << "echo \"$job\" >>" << (folder_.path() / "jobs").string() << "\n"
                        << result << "\ndone\n";
    fs::permissions(path, fs::perms::owner_all);
  }

  [[nodiscard]] std::vector<Job> jobs() const {
    std::ifstream lines(folder_.path() / "jobs");
    std::vector<Job> found;
    for (std::string line; std::getline(lines, line);) found.push_back(job_in(line));
    return found;
  }

  std::vector<Row> measure_native(const std::string& figure, int samples = 2) {
    return measure_one("native", figure, samples, 64 << 10);
  }

  std::vector<Row> measure_one(const std::string& name, const std::string& figure, int samples, std::uint64_t bytes) {
    Registry registry;
    add_systems(registry);
    std::vector<System*> system = registry.select(std::vector{name}, "file");
    Options options;
    options.sizes = {4096};
    options.bytes = bytes;
    options.samples = samples;
    options.smoke = true;
    options.file.figures = {figure};
    options.file.directory = folder_.path();
    return measure(options, system, circumstances_);
  }

  static std::string done() {
    return "echo 'done " + to_line(Finding{.seconds = 0.5, .useful_bytes = 1'000'000'000}) + "'";
  }

  test::TemporaryDirectory folder_;
  ScopedEnvironment named_;
  Circumstances circumstances_;
};

TEST_F(FileSystems, EachSystemIsCheckedOnceAtAPointBeforeItsSamples) {
  write(done());
  const std::vector<Row> rows = measure_native("hit", 3);
  EXPECT_EQ(rows.at(0).median, 2);
  EXPECT_EQ(rows.at(0).n, 3U);
  std::vector<bool> checks;
  for (const Job& job : jobs()) checks.push_back(job.check);
  EXPECT_THAT(checks, ElementsAre(true, false, false, false));
}

TEST_F(FileSystems, FilesAreThereWithTheirBytesAndGoneAfterwards) {
  write("cp $(echo \"$job\" | sed 's/.*\"files\":\"\\([^\"]*\\)\".*/\\1/')-0 " + (folder_.path() / "seen").string() +
        "\n" + done());
  measure_native("hit");
  ASSERT_EQ(fs::file_size(folder_.path() / "seen"), 64U << 10);
  std::vector<std::uint64_t> words((64 << 10) / sizeof(std::uint64_t));
  std::ifstream(folder_.path() / "seen").read(reinterpret_cast<char*>(words.data()), 64 << 10);
  EXPECT_EQ(first_difference(words, salt_of(0, 0), 0), UINT64_MAX);
  EXPECT_FALSE(fs::exists(fs::path(jobs().at(0).files).parent_path()));
}

TEST_F(FileSystems, AProgramThatWritesNothingIsFoundOutByItsFile) {
  write(done());
  EXPECT_THAT(measure_native("write"), IsEmpty());
  EXPECT_THAT(circumstances_.failures,
              ElementsAre(AllOf(Field(&Failure::system, "native"), Field(&Failure::point, HasSubstr("file write")),
                                Field(&Failure::reason, HasSubstr("has not what was written at 0")))));
}

TEST_F(FileSystems, WhatFailsIsTold) {
  write("echo failed process 3: exit status 1");
  EXPECT_THAT(measure_native("hit"), IsEmpty());
  EXPECT_THAT(circumstances_.failures, ElementsAre(Field(&Failure::reason, HasSubstr("process 3"))));
}

TEST_F(FileSystems, AFileIsAnotherOneToCachesBeforeEachFirstTouch) {
  write("stat -c %z $(echo \"$job\" | sed 's/.*\"files\":\"\\([^\"]*\\)\".*/\\1/')-0 >>" +
        (folder_.path() / "stamps").string() + "\n" + done());
  measure_native("first", 2);
  std::ifstream lines(folder_.path() / "stamps");
  std::vector<std::string> stamps;
  for (std::string line; std::getline(lines, line);) stamps.push_back(line);
  EXPECT_THAT(stamps, SizeIs(3));
  EXPECT_EQ(std::unique(stamps.begin(), stamps.end()), stamps.end());
}

TEST_F(FileSystems, TheProgramOfTheApiIsToldItsPath) {
  write("echo $1 >" + (folder_.path() / "path").string() + "\n" + done(), "wherry-bench-file-api");
  for (const std::string word : {"kernel", "cache", "auto", "host"}) {
    measure_one("wherry-api-" + word, "hit", 1, 64 << 10);
    std::string path;
    std::ifstream(folder_.path() / "path") >> path;
    EXPECT_EQ(path, word);
  }
}

TEST_F(FileSystems, PassesBeforeTheClockAreManyOnlyWhereFilesAreMapped) {
  write(done(), "wherry-bench-file-api");
  measure_one("wherry-api-kernel", "hit", 1, 64 << 10);
  EXPECT_THAT(jobs(), Each(Field(&Job::warm_ups, 1)));
  measure_one("wherry-api-cache", "hit", 1, 64 << 10);
  EXPECT_GT(jobs().back().warm_ups, 1U);
}

TEST_F(FileSystems, WhatIsSlowGoesOverTheBeginOfItsFile) {
  write(done(), "wherry-bench-file-fuse");
  measure_one("fuse-direct", "hit", 1, 16 << 20);
  EXPECT_THAT(jobs(), AllOf(SizeIs(2), Each(Field(&Job::bytes, 4 << 20))));
  measure_one("fuse-cached", "hit", 1, 16 << 20);
  EXPECT_EQ(jobs().back().bytes, 16U << 20);
}

TEST_F(FileSystems, WhereFuseIsForbiddenItIsMissingAndTheReasonIsTold) {
  const fs::path program = folder_.path() / "wherry-bench-file-fuse";
  std::ofstream(program) << "#!/bin/bash\necho no device for $1; exit 1\n";
  fs::permissions(program, fs::perms::owner_all);
  Registry registry;
  add_systems(registry);
  EXPECT_THAT(registry.missing, Contains(AllOf(Field(&Missing::name, "fuse-direct"),
                                               Field(&Missing::reason, HasSubstr("no device for check; mounting")))));
}

TEST_F(FileSystems, SshfsAloneIsMissingWhereItIsNotInstalled) {
  const fs::path program = folder_.path() / "wherry-bench-file-mount";
  std::ofstream(program) << "#!/bin/bash\n[ \"$2\" != --sshfs ] || { echo no program sshfs; exit 1; }\n";
  fs::permissions(program, fs::perms::owner_all);
  Registry registry;
  add_systems(registry);
  EXPECT_THAT(registry.missing,
              Contains(AllOf(Field(&Missing::name, "sshfs"), Field(&Missing::reason, HasSubstr("no program sshfs")))));
  EXPECT_THAT(registry.missing, Not(Contains(Field(&Missing::name, "wherry-mount"))));
}

TEST_F(FileSystems, NfsIsLeftOutAndTheReasonSaysWhetherTheKernelHasIt) {
  const fs::path known = folder_.path() / "filesystems";
  std::ofstream(known) << "nodev\tsysfs\n\text4\nnodev\tnfsd\n";
  EXPECT_THAT(nfs_hindrance(known), HasSubstr("this kernel does not have it"));
  std::ofstream(known, std::ios::app) << "nodev\tnfs4\n";
  EXPECT_THAT(nfs_hindrance(known), HasSubstr("--systems native with --directory on it"));
  Registry registry;
  add_systems(registry);
  EXPECT_THAT(registry.missing, Contains(AllOf(Field(&Missing::name, "nfs"), Field(&Missing::question, "file"),
                                               Field(&Missing::reason, nfs_hindrance("/proc/filesystems")))));
}

TEST_F(FileSystems, WithoutTheProgramAllAreMissing) {
  Registry registry;
  add_systems(registry);
  EXPECT_THAT(registry.systems, IsEmpty());
  std::erase_if(registry.missing, [](const Missing& one) { return one.name == "nfs"; });
  EXPECT_THAT(registry.missing,
              Each(AllOf(Field(&Missing::reason, HasSubstr("make build")), Field(&Missing::question, "file"))));
  EXPECT_FALSE(registry.missing.empty());
}

}  // namespace
}  // namespace wherry::bench::file
