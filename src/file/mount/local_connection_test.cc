// SPDX-License-Identifier: Apache-2.0
// A LocalConnection has the same results as the server.
#include "file/mount/local_connection.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "file/client/host.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file::mount {
namespace {

using namespace layout;

struct LocalConnections : testing::Test {
  HostOptions options(bool local) {
    HostOptions options = served.client();
    if (!local) return options;
    options.shorten = [this](std::unique_ptr<StreamConnection> stream) {
      auto made = LocalConnection::instead_of(std::move(stream), shared);
      is_local = dynamic_cast<LocalConnection*>(made.get()) != nullptr;
      return made;
    };
    return options;
  }

  ServedDirectory served;
  LocalConnection::Shared shared;
  bool is_local = false;
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string said(const Result& result) { return std::to_string(result.error) + "/" + std::to_string(result.bytes); }

struct Word {
  Word(std::string word) : text(std::move(word)) {}  // NOLINT(google-explicit-constructor): of a list
  Word(const char* word) : text(word) {}             // NOLINT(google-explicit-constructor): of a list
  template <std::integral T>
  Word(T number) : text(std::to_string(number)) {}  // NOLINT(google-explicit-constructor): of a list
  std::string text;
};

/// Calls of a host, with their results.
struct Notes {
  void operator()(const char* call, std::initializer_list<Word> words) {
    all.emplace_back(call);
    for (const Word& word : words) all.back() += " " + word.text;
  }
  Host::Handle open(Host& host, const char* name, std::uint32_t flags) {
    const Host::Opened file = host.open(name, flags, 0640);
    (*this)("open", {name, file.error, file.status.size, file.status.mode});
    return file.handle;
  }

  std::vector<std::string> all{};
};

constexpr std::uint32_t kMake = kFileOpenRead | kFileOpenWrite | kFileOpenCreate;

void call_with_data(Host& host, Notes& note) {
  const Host::Handle file = note.open(host, "file", kMake);
  note.open(host, "none", kFileOpenRead);
  note.open(host, "../out", kFileOpenRead);
  note.open(host, "file", kFileOpenWrite | kFileOpenCreate | kFileOpenExclusive);
  const std::string data(300'000, 'd');
  note("write", {said(host.write(file, 5, as_data(data))), said(host.write(file, 0, as_data("")))});
  note("write at the end", {said(host.write(file, INT64_MAX, as_data(data)))});
  std::vector<std::byte> into(400'000);
  note("read", {said(host.read(file, 3, std::span(into))), text_of(std::span(into).first(4))});
  note("read nothing", {said(host.read(file, 3, std::span<std::byte>()))});
  note("read behind", {said(host.read(file, 1 << 20, std::span(into)))});
  note("read far", {said(host.read(file, INT64_MAX, std::span(into)))});
  note("append", {said(host.append(file, as_data("no")))});
  const Host::Handle appending = note.open(host, "file", kFileOpenWrite | kFileOpenAppend);
  note("append", {said(host.append(appending, as_data("yes"))), said(host.append(appending, as_data("")))});
  note("write", {said(host.write(appending, 0, as_data("no")))});
  const Host::Handle other = note.open(host, "other", kMake);
  note("copy", {said(host.copy(file, 2, other, 1, 100'000)), said(host.copy(file, 0, file, 1, 10)),
                said(host.copy(file, 0, file, 300'000, 10)), said(host.copy(file, 0, appending, 0, 1))});
  std::uint64_t found = 0;
  note("seek", {host.seek(file, 0, FileSeek::hole, found), found});
  note("flush", {host.flush(file), host.flush(file, true)});
  for (const Host::Handle handle : {file, appending, other}) note("close", {host.close(handle), host.close(handle)});
}

void call_for_attributes(Host& host, Notes& note) {
  const Host::Handle file = note.open(host, "other", kFileOpenRead | kFileOpenWrite);
  FileStatus status{};
  note("status", {host.status(file, status), status.size});
  note("set_size", {host.set_size(file, 50), host.names().set_size("none", 1),
                    host.names().status("other", false, status), status.size});
  note("set_mode", {host.set_mode(file, 0600), host.names().set_mode("other", 0604),
                    host.names().status("other", false, status), status.mode});
  note("allocate", {host.allocate(file, 0, 0, 5000), host.status(file, status), status.size});
  std::vector<std::byte> value;
  note("xattrs", {host.xattrs().set({.handle = file}, "user.one", as_data("value")),
                  host.xattrs().set({.name = "other"}, "user.one", as_data("x"), kFileXattrCreate),
                  host.xattrs().get({.name = "other"}, "user.one", value), text_of(value),
                  host.xattrs().list({.handle = file}, value), text_of(value),
                  host.xattrs().remove({.handle = file}, "user.none")});
  FileSystemStatus system{};
  note("file_system", {host.names().file_system(".", system), system.type});
  note("close", {host.close(file)});
}

void call_for_names(Host& host, Notes& note) {
  note("names", {host.names().make_directory("folder", 0750), host.names().make_directory("folder", 0750),
                 host.names().rename("other", "folder/moved"), host.names().rename("folder", "folder/below"),
                 host.names().link("folder/moved", "linked"), host.names().symlink("link", "target")});
  std::string target;
  note("read_link", {host.names().read_link("link", target), target, host.names().read_link("file", target)});
  const Host::Handle folder = note.open(host, "folder", kFileOpenRead | kFileOpenDirectory);
  std::vector<Host::Entry> entries;
  note("list", {host.list_with_status(folder, 0, 4096, entries), entries.size()});
  std::ranges::sort(entries, {}, &Host::Entry::name);
  for (const Host::Entry& entry : entries)
    note("entry", {entry.name, entry.type, entry.status ? entry.status->size : 0});
  note("close", {host.close(folder)});
  note("remove", {host.names().remove("folder"), host.names().remove("folder/moved"),
                  host.names().remove("folder", true), host.names().remove("linked"), host.names().remove("link")});
}

void call_for_locks(Host& host, Notes& note) {
  const Host::Handle file = note.open(host, "file", kFileOpenRead | kFileOpenWrite);
  const auto held = std::make_shared<HeldLocks>();
  const Host::Handle one = host.locks().open(file, 0, held).handle;
  const Host::Handle other = host.locks().open(file, 0, std::make_shared<HeldLocks>()).handle;
  const FileLock lock{
      .offset = 0, .length = 10, .type = static_cast<std::uint32_t>(FileLockType::write), .reserved = 0};
  note("locks", {host.locks().set(one, 0, lock), host.locks().set(other, 0, lock), held->any()});
  for (const Host::Handle handle : {one, other, file}) note("close", {host.close(handle)});
  note("remove", {host.names().remove("file"), host.names().remove("file")});
}

/// Runs in a directory that is empty before and after.
std::vector<std::string> results(Host& host) {
  Notes note;
  call_with_data(host, note);
  call_for_attributes(host, note);
  call_for_names(host, note);
  call_for_locks(host, note);
  return std::move(note.all);
}

TEST_F(LocalConnections, DoWhatTheServerDoes) {
  Host by_stream(options(false));
  const auto expected = results(by_stream);
  Host local(options(true));
  if (!is_local) GTEST_SKIP() << "the server's descriptors are out of reach here";
  EXPECT_EQ(results(local), expected);
  EXPECT_TRUE(std::filesystem::is_empty(served.root()));
}

TEST_F(LocalConnections, AFileIsOpenedOnceMoreForWhatItIsOpenForOnly) {
  std::ofstream(served.root() / "file") << "text";
  for (const bool local : {false, true}) {
    Host host(options(local));
    const Host::Handle file = host.open("file", kFileOpenRead).handle;
    EXPECT_EQ(host.open_again(file, kFileOpenRead).error, 0);
    EXPECT_EQ(host.open_again(file, kFileOpenWrite).error, EACCES);
    EXPECT_EQ(host.open_again(file, kFileOpenRead | kFileOpenTruncate).error, EINVAL);
    EXPECT_EQ(host.close(file), 0);
    EXPECT_EQ(host.open_again(file, kFileOpenRead).error, EBADF);
  }
}

TEST_F(LocalConnections, LendFilesOfTheirOwn) {
  HostOptions lending = options(true);
  lending.borrows = true;
  Host local(std::move(lending));
  const Host::Opened file = local.open("file", kFileOpenRead | kFileOpenWrite | kFileOpenCreate, 0600);
  const auto lent = local.lend(file.handle);
  ASSERT_NE(lent, nullptr);
  EXPECT_EQ(said(lent->write(0, std::vector<iovec>{})), "0/0");
  EXPECT_EQ(said(local.write(file.handle, 0, as_data("text"))), "0/4");
  EXPECT_EQ(content_of(served.root() / "file"), "text");
}

TEST_F(LocalConnections, EndWithTheServerAndGoOnWithTheNextOne) {
  Host local(options(true));
  const Host::Opened file = local.open("file", kFileOpenRead | kFileOpenWrite | kFileOpenCreate, 0600);
  EXPECT_EQ(said(local.write(file.handle, 0, as_data("before"))), "0/6");
  for (int i = 0; i < 5; ++i) {
    served.kill();
    EXPECT_EQ(said(local.write(file.handle, 0, as_data("after!"))), "0/6");
    EXPECT_EQ(content_of(served.root() / "file"), "after!");
  }
}

TEST(LocalConnection, OfAServerThatLendsNothingIsNotMade) {
  const ServedDirectory served({.lends = false});
  LocalConnection::Shared shared;
  auto stream = std::make_unique<StreamConnection>(served.address(), 0, AtFaultPoint(), Timeout());
  StreamConnection* const given = stream.get();
  EXPECT_EQ(LocalConnection::instead_of(std::move(stream), shared).get(), given);
}

TEST(LocalConnection, OfAServerThatOnlyReadsChangesNothing) {
  const ServedDirectory served({.read_only = true});
  std::ofstream(served.root() / "file") << "text";
  LocalConnection::Shared shared;
  HostOptions options = served.client();
  options.shorten = [&](std::unique_ptr<StreamConnection> stream) {
    return LocalConnection::instead_of(std::move(stream), shared);
  };
  Host host(options);
  EXPECT_TRUE(host.read_only());
  EXPECT_EQ(host.names().make_directory("folder", 0700), EROFS);
  EXPECT_EQ(host.open("file", kFileOpenWrite).error, EROFS);
  const Host::Opened file = host.open("file", kFileOpenRead);
  EXPECT_EQ(read_all(host, file.handle), "text");
  EXPECT_EQ(host.xattrs().set({.handle = file.handle}, "user.x", as_data("x")), EROFS);
}

}  // namespace
}  // namespace wherry::file::mount
