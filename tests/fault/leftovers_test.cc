// SPDX-License-Identifier: Apache-2.0
// What is left after processes died: nothing, in the survivor and in the system.
#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/scoped_environment.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

namespace fs = std::filesystem;

std::size_t lines_with(const char* file, const std::string& text) {
  std::ifstream lines(file);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.find(text) != std::string::npos ? 1 : 0;
  return count;
}

std::size_t entries(const fs::path& folder) {
  std::error_code none;
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder, none), fs::directory_iterator()));
}

/// Wherry's names in /dev/shm. Others' come and go there: of tests, of cards' caches, and of what `wherry bench`
/// compares with.
std::size_t shared_names() {
  constexpr std::array kOthers{"wherry-bench-", "wherry-test-", "wherry-files-", "wherry-changes-"};
  std::size_t count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename().string();
    const auto begins_so = [&](const char* other) { return name.starts_with(other); };
    if (name.starts_with("wherry") && std::ranges::none_of(kOthers, begins_so)) ++count;
  }
  return count;
}

/// A folder that programs are told to keep their files in.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("wherry-leftovers-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

class Leftovers : public FaultTest {
 protected:
  /// Names of this test's job that the kernel still holds.
  [[nodiscard]] static std::size_t names() {
    return lines_with("/proc/net/unix",
                      "wherry/" + std::to_string(::geteuid()) + "/" + std::getenv("WHERRY_JOB") + "/");
  }
  [[nodiscard]] static std::size_t mappings() { return lines_with("/proc/self/maps", "wherry.segment"); }

  Folder folder_;
  ScopedEnvironment runtime_{"XDG_RUNTIME_DIR", folder_.path().c_str()};
  ScopedEnvironment temporary_{"TMPDIR", folder_.path().c_str()};
};

TEST_F(Leftovers, ASurvivorGetsBackDescriptorsAndMappings) {
  {
    const Listener warm_up = listen(address());
  }  // What a process opens once, such as its statistics.
  const std::size_t descriptors = open_descriptors();
  for (int round = 0; round < 20; ++round) {
    reset_scene();
    Listener listener = listen(address());
    const Child victim([&] {
      Stream stream = connect(listener.local().to_string(), {}, kTimeout);
      (void)stream.send(pattern_.bytes(100));
      const Connecting second = start_connect(listener.local().to_string());
      scene_->ready = true;
      while (true) ::pause();
      return true;
    });
    Stream stream = listener.accept(kTimeout);
    (void)stream.receive_descriptor();
    (void)stream.send_descriptor();
    while (!scene_->ready) std::this_thread::yield();
    victim.kill();
    std::uint64_t received = 0;
    EXPECT_EQ(receive_to_the_last(stream, pattern_, received).error, ECONNRESET);
    EXPECT_GT(mappings(), 0U) << "so that zero below means something";
    stream.close();
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(mappings(), 0U);
  EXPECT_EQ(names(), 0U);
}

TEST_F(Leftovers, NothingIsLeftWhenEverybodyIsKilled) {
  const std::size_t shared_before = shared_names();
  SharedValue<std::atomic<std::uint32_t>> port;
  SharedValue<std::atomic<int>> connected;
  std::vector<Child> victims;
  victims.emplace_back([&] {
    Listener listener = listen(address());
    *port = *listener.local().port;
    std::vector<Stream> streams;
    while (true) streams.push_back(listener.accept(kTimeout));
    return true;
  });
  while (*port == 0) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) {
    victims.emplace_back([&] {
      Stream stream = connect("wherry+shm://0:" + std::to_string(*port), {}, kTimeout);
      const Listener own = listen(address());
      (void)stream.send(pattern_.bytes(100'000));
      ++*connected;
      while (true) ::pause();
      return true;
    });
  }
  while (*connected < 5) std::this_thread::sleep_for(1ms);
  EXPECT_GE(names(), 6U) << "so that zero below means something";
  for (const Child& victim : victims) victim.kill();
  for (Child& victim : victims) victim.wait();
  EXPECT_EQ(names(), 0U);
  EXPECT_EQ(entries(folder_.path()), 0U);
  EXPECT_EQ(shared_names(), shared_before);
}

}  // namespace
}  // namespace wherry::fault
