// SPDX-License-Identifier: Apache-2.0
//
// files_api_worker NAME PATH,PATH..., as files_game starts it: calls of wherry::files, each on another of the paths.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <wherry/files.hpp>

#include "base/file_paths.hpp"
#include "tests/files/seen.hpp"
#include "tests/files/truth.hpp"
#include "tests/files/turns.hpp"

namespace {

using wherry::Result;
using wherry::files::File;
using wherry::files::Path;

std::vector<Path> paths_in(const std::string& words) {
  std::vector<Path> found;
  std::istringstream all(words);
  for (std::string word; std::getline(all, word, ',');) {
    const wherry::FilePathWord* const known = wherry::find_file_path(word);
    if (known == nullptr) fail("%s is no path", word.c_str());
    found.push_back(known->path);
  }
  return found;
}

class ApiWorker {
 public:
  ApiWorker(Truth& truth, const char* name, std::vector<Path> paths, std::uint64_t seed)
      : truth_(truth), name_(name), paths_(std::move(paths)), random_(seed) {
    reopen();
  }

  void make(unsigned operations) {
    for (unsigned i = 0; i < operations; i++) one();
  }

  /// Reads alone.
  void read_quietly() {
    unseen_ += unseen_of(2000, [this](std::uint64_t i) { i % 4 == 0 ? read_on() : read_some(); });
  }

  [[nodiscard]] std::uint64_t unseen() const { return unseen_; }

  void sync() { want_done(both_.sync(below(2) == 0), 0, "sync"); }

  void reopen() {
    for (File* file : {&reading_, &both_, &appending_})
      want_done(file->is_open() ? file->close() : Result{}, 0, "close");
    reading_ = wherry::files::open(name_, O_RDONLY);
    both_ = wherry::files::open(name_, O_RDWR);
    appending_ = wherry::files::open(name_, O_WRONLY | O_APPEND);
  }

 private:
  using Operation = void (ApiWorker::*)();

  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }
  Path some_path() { return paths_[below(paths_.size())]; }

  void one() {
    static constexpr std::array kOften{&ApiWorker::read_some, &ApiWorker::read_on, &ApiWorker::read_some,
                                       &ApiWorker::view_some};
    static constexpr std::array kSeldom{&ApiWorker::write_some, &ApiWorker::write_parts, &ApiWorker::append,
                                        &ApiWorker::cut,        &ApiWorker::ask_size,    &ApiWorker::read_parts};
    const std::size_t chance = below(100);
    const Operation operation = chance > 10  ? kOften[below(kOften.size())]
                                : chance > 0 ? kSeldom[below(kSeldom.size())]
                                             : &ApiWorker::reopen;
    (this->*operation)();
  }

  std::size_t some_length() {
    static constexpr std::array<std::size_t, 4> kMostOf{512, 4096, 40'000, 200'000};
    return 1 + below(kMostOf[below(kMostOf.size())]);
  }
  std::size_t some_offset() { return below(std::max<std::size_t>(truth_.size + truth_.size / 8, 1)); }

  static void want_done(const Result& result, std::size_t bytes, const char* what) {
    errno = result.error;
    want(result.error == 0, what);
    if (result.bytes != bytes) fail("%s: %zu bytes of %zu", what, result.bytes, bytes);
  }

  void compare(const char* what, Path path, const unsigned char* got, const Result& result, std::size_t offset,
               std::size_t length) {
    truth_.reads++;
    errno = result.error;
    want(result.error == 0, what);
    const std::size_t expected = offset >= truth_.size ? 0 : std::min(length, truth_.size - offset);
    if (result.bytes != expected) {
      fail("%s on path %d: %zu bytes of %zu at %zu, not %zu (size %zu)", what, static_cast<int>(path), result.bytes,
           length, offset, expected, truth_.size);
    }
    compare_bytes(what, path, {got, expected}, offset);
  }

  void compare_bytes(const char* what, Path path, std::span<const unsigned char> got, std::size_t offset) const {
    for (std::size_t i = 0; i < got.size(); i++) {
      if (got[i] == truth_.bytes[offset + i]) continue;
      fail("%s on path %d: byte %zu is %02x, not %02x (read of %zu at %zu, size %zu)", what, static_cast<int>(path),
           offset + i, got[i], truth_.bytes[offset + i], got.size(), offset, truth_.size);
    }
  }

  void read_at(std::size_t offset) {
    const Path path = some_path();
    buffer_.resize(some_length());
    File& file = below(2) == 0 ? reading_ : both_;
    const Result result = file.pread(std::as_writable_bytes(std::span(buffer_)), offset, path);
    compare("pread", path, buffer_.data(), result, offset, buffer_.size());
    next_ = offset + result.bytes;
  }
  void read_some() { read_at(some_offset()); }
  void read_on() { read_at(next_); }

  void read_parts() {
    const Path path = some_path();
    buffer_.resize(some_length());
    const std::size_t first = below(buffer_.size());
    const std::array<iovec, 2> parts{iovec{buffer_.data(), first},
                                     iovec{buffer_.data() + first, buffer_.size() - first}};
    const std::size_t offset = some_offset();
    compare("preadv", path, buffer_.data(), reading_.preadv(parts, offset, path), offset, buffer_.size());
  }

  void view_some() {
    const std::size_t offset = some_offset();
    const auto bytes = reading_.view(offset, some_length());
    if (bytes.empty()) return;
    buffer_.assign(reinterpret_cast<const unsigned char*>(bytes.data()),
                   reinterpret_cast<const unsigned char*>(bytes.data()) + bytes.size());
    if (offset + buffer_.size() > truth_.size) fail("a view ends behind the end of the file");
    compare_bytes("view", Path::cache, buffer_, offset);
  }

  void fill(std::size_t length) {
    buffer_.resize(length);
    for (auto& byte : buffer_) byte = static_cast<unsigned char>(random_());
  }

  void became(std::size_t offset) {
    const auto at = [this](std::size_t i) { return truth_.bytes.begin() + static_cast<long>(i); };
    if (offset > truth_.size) std::fill(at(truth_.size), at(offset), 0);
    std::copy(buffer_.begin(), buffer_.end(), at(offset));
    truth_.size = std::max(truth_.size, offset + buffer_.size());
  }

  void write_some() {
    const std::size_t offset = std::min(some_offset(), kMost - 1);
    fill(std::min(some_length(), kMost - offset));
    want_done(both_.pwrite(std::as_bytes(std::span(buffer_)), offset, some_path()), buffer_.size(), "pwrite");
    became(offset);
  }

  void write_parts() {
    const std::size_t offset = std::min(some_offset(), kMost - 1);
    fill(std::min(some_length(), kMost - offset));
    const std::size_t first = below(buffer_.size());
    const std::array<iovec, 2> parts{iovec{buffer_.data(), first},
                                     iovec{buffer_.data() + first, buffer_.size() - first}};
    want_done(both_.pwritev(parts, offset, some_path()), buffer_.size(), "pwritev");
    became(offset);
  }

  void append() {
    fill(std::min({some_length(), std::size_t{5000}, kMost - truth_.size}));
    want_done(appending_.append(std::as_bytes(std::span(buffer_))), buffer_.size(), "append");
    became(truth_.size);
  }

  void cut() {
    const std::size_t size = std::min(truth_.size / 2 + below(truth_.size + 1), kMost);
    want_done(both_.set_size(size), 0, "set_size");
    if (size > truth_.size) std::fill_n(truth_.bytes.begin() + static_cast<long>(truth_.size), size - truth_.size, 0);
    truth_.size = size;
  }

  void ask_size() {
    wherry::files::Status status;
    want_done(reading_.stat(status), 0, "stat");
    if (status.size != truth_.size)
      fail("stat: %llu bytes, not %zu", static_cast<unsigned long long>(status.size), truth_.size);
  }

  Truth& truth_;
  const char* name_;
  std::vector<Path> paths_;
  std::mt19937_64 random_;
  File reading_;
  File both_;
  File appending_;
  std::size_t next_ = 0;
  std::uint64_t unseen_ = 0;
  std::vector<unsigned char> buffer_;
};

}  // namespace

int main(int count, char** words) {
  if (count != 7) fail("files_game starts this");
  try {
    const std::vector<Path> paths = paths_in(words[2]);
    return take_turns(words + 3,
                      [&](Truth& truth, std::uint64_t seed) { return ApiWorker(truth, words[1], paths, seed); });
  } catch (const wherry::Error& error) {
    fail("%s", error.what());
  }
}
