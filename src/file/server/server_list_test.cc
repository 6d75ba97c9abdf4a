// SPDX-License-Identifier: Apache-2.0
// What a client makes of lists that no server of ours sends.
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

#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

using namespace layout;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// The payload of a list: an entry with a status, which says that its name is `name_bytes` long, and the name.
std::vector<std::byte> entry(std::uint32_t name_bytes, std::string_view name, bool with_status = true) {
  const FileEntry head{.inode = 7, .cookie = 1, .type = DT_REG, .name_bytes = name_bytes};
  FileStatus status{};
  status.mode = 0100644;
  std::vector<std::byte> payload(bytes_of(head).begin(), bytes_of(head).end());
  if (with_status) payload.insert(payload.end(), bytes_of(status).begin(), bytes_of(status).end());
  payload.insert(payload.end(), as_data(name).begin(), as_data(name).end());
  return payload;
}

/// A server that answers every list with this payload.
class ListServer {
 public:
  explicit ListServer(const std::vector<std::byte>& payload) : server_([this, payload] { return serve(payload); }) {
    while (!place_->ready) std::this_thread::yield();
  }
  [[nodiscard]] std::string address() const { return place_->address.data(); }

 private:
  struct Place {
    std::array<char, 128> address{};
    std::atomic<bool> ready{false};
  };

  bool serve(const std::vector<std::byte>& payload) {
    Listener listener = listen("wherry+shm://*:*");
    std::strncpy(place_->address.data(), listener.local().to_string().c_str(), place_->address.size() - 1);
    place_->ready = true;
    while (true) {
      Stream stream = listener.accept();
      FileHello hello{};
      FileRequest request{};
      if (!stream.receive_all(std::as_writable_bytes(std::span(&hello, 1))).ok()) continue;
      stream.send(bytes_of(hello));
      while (stream.receive_all(std::as_writable_bytes(std::span(&request, 1))).ok()) {
        std::vector<std::byte> name(request.name_bytes);
        if (!name.empty() && !stream.receive_all(name).ok()) break;
        const bool opens = request.call == static_cast<std::uint32_t>(FileCall::open);
        const std::vector<std::byte> answered = opens ? std::vector<std::byte>(sizeof(FileStatus)) : payload;
        const FileAnswer answer{.id = request.id,
                                .last = 1,
                                .error = 0,
                                .payload_bytes = static_cast<std::uint32_t>(answered.size()),
                                .value = 1,
                                .position = 0};
        stream.send(bytes_of(answer));
        stream.send(answered);
      }
    }
    return true;
  }

  SharedValue<Place> place_;
  Child server_;
};

int list_of(const std::vector<std::byte>& payload, std::vector<Host::Entry>& entries) {
  const ListServer server(payload);
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

/// Where the server's descriptor of a directory is; -1 if it has none.
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
