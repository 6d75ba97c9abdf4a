// SPDX-License-Identifier: Apache-2.0
// A client's reaction to lists that no valid server sends.
#include <dirent.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/common/answering_server.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

using namespace layout;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// The payload of a list: an entry with a status whose header claims a name of `name_bytes`, and the name.
std::vector<std::byte> entry(std::uint32_t name_bytes, std::string_view name, bool with_status = true) {
  const FileEntry head{.inode = 7, .cookie = 1, .type = DT_REG, .name_bytes = name_bytes};
  FileStatus status{};
  status.mode = 0100644;
  std::vector<std::byte> payload(bytes_of(head).begin(), bytes_of(head).end());
  if (with_status) payload.insert(payload.end(), bytes_of(status).begin(), bytes_of(status).end());
  payload.insert(payload.end(), as_data(name).begin(), as_data(name).end());
  return payload;
}

int list_of(const std::vector<std::byte>& payload, std::vector<Host::Entry>& entries) {
  const AnsweringServer server([&](const FileRequest& request) -> AnsweringServer::Answer {
    const auto bytes = static_cast<std::uint32_t>(payload.size());
    return {{.id = request.id, .last = 1, .error = 0, .payload_bytes = bytes, .value = 1, .position = 0}, payload};
  });
  Host host({.address = server.address(), .timeout = std::chrono::milliseconds(30)});
  const Host::Handle handle = host.open(".", kFileOpenRead | kFileOpenDirectory).handle;
  return host.list_with_status(handle, 0, 4096, entries);
}

TEST(ListsOfAHostileServer, AreRefusedWhereTheyMakeNoSense) {
  std::vector<Host::Entry> entries;
  EXPECT_EQ(list_of(entry(4, "name"), entries), 0);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries.front().name, "name");
  EXPECT_EQ(entries.front().status.value().mode, 0100644U);
  EXPECT_EQ(list_of(entry(0, ""), entries), EIO);
  EXPECT_EQ(list_of(entry(5, "name"), entries), EIO);
  EXPECT_EQ(list_of(entry(UINT32_MAX, "name"), entries), EIO);
  EXPECT_EQ(list_of(entry(1024, std::string(1024, 'n')), entries), 0) << "vfat has such";
  EXPECT_EQ(list_of(entry(1025, std::string(1025, 'n')), entries), EIO);
  EXPECT_EQ(list_of(entry(4, "name", false), entries), EIO);
  EXPECT_EQ(list_of(entry(3, "name"), entries), EIO) << "a byte is left";
  EXPECT_EQ(list_of(std::vector<std::byte>(kFileMaxList + 1), entries), EIO);
  EXPECT_EQ(list_of({}, entries), 0);
  EXPECT_TRUE(entries.empty());
}

/// The file offset of the server's descriptor of a directory; -1: it has none.
long position_of(const ServedDirectory& served, const std::filesystem::path& directory) {
  const std::filesystem::path process = "/proc/" + std::to_string(served.pid());
  for (const auto& one : std::filesystem::directory_iterator(process / "fd")) {
    std::error_code closed;
    if (std::filesystem::read_symlink(one, closed) != directory) continue;
    std::ifstream information(process / "fdinfo" / one.path().filename());
    std::string word;
    std::uint64_t position = 0;
    information >> word >> position;
    return static_cast<long>(position);
  }
  return -1;
}

TEST(ListsWithStatus, LeaveTheDirectoryWhereTheyEnd) {
  for (const std::size_t bytes : {1, 4, 5, 60, 255}) {
    const ServedDirectory served;
    std::filesystem::create_directory(served.root() / "folder");
    for (char first = 'a'; first <= 'z'; ++first)
      std::ofstream(served.root() / "folder" / std::string(bytes, first)).flush();
    Host host(served.client());
    const Host::Handle handle = host.open("folder", kFileOpenRead | kFileOpenDirectory).handle;
    std::vector<Host::Entry> entries;
    std::size_t all = 0;
    for (std::uint64_t cookie = 0;; cookie = entries.back().cookie) {
      ASSERT_EQ(host.list_with_status(handle, cookie, 2048, entries), 0);
      if (entries.empty()) break;
      all += entries.size();
      EXPECT_EQ(position_of(served, served.root() / "folder"), static_cast<long>(entries.back().cookie)) << bytes;
    }
    EXPECT_EQ(all, 28U);
  }
}

}  // namespace
}  // namespace wherry::file
