// SPDX-License-Identifier: Apache-2.0
//
// What a hit in the cache of files costs beside pread of the same file, which the kernel has in its page cache: GB/s, a
// file of 16 MB read in order from its beginning to its end again and again. And, in ns, what the cache adds to calls
// that it does not serve: filling a block, and noting a change.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "base/unique_fd.hpp"
#include "bench/harness/report.hpp"
#include "bench/standalone/options.hpp"
#include "file/cache.hpp"
#include "file/segment_file.hpp"

namespace {

using wherry::bench::Row;
using namespace wherry::file;

constexpr std::size_t kFileBytes = std::size_t{16} << 20;
constexpr std::size_t kBlock = wherry::layout::kFileBlock;
constexpr std::uint64_t kAnHour = 3'600'000'000'000;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// A file, and a segment of its own in which all of it is.
class Place {
 public:
  Place() {
    std::string name = (std::filesystem::temp_directory_path() / "wherry-bench-XXXXXX").string();
    file_ = wherry::UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
    ::unlink(name.c_str());
    const std::vector<std::byte> content(kFileBytes, std::byte{0x5A});
    if (::write(file_.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
      throw std::system_error(errno, std::system_category(), name);
    }
    const std::string path = "/dev/shm/wherry-files-bench-" + std::to_string(::getpid());
    const wherry::UniqueFd segment = make_segment(path, 4 * kFileBytes);
    const Refusal refusal = cache_.attach(path.c_str());
    ::unlink(path.c_str());
    if (refusal) throw std::runtime_error(refusal.reason);
    if (::fstat(file_.get(), &status_) != 0) throw std::system_error(errno, std::system_category(), name);
    opened_ = cache_.open(key());
    if (cache_.validate(opened_, Stamp(status_, Stamp::now() + kAnHour)) != Validity::usable) {
      throw std::runtime_error("the cache cannot be used");
    }
    for (std::uint64_t block = 0; block < kFileBytes / kBlock; ++block) fill(block);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { cache_.detach(); }

  [[nodiscard]] Key key() const { return Key(status_); }
  Cache& cache() { return cache_; }
  [[nodiscard]] int file() const { return file_.get(); }

  void hit(std::uint64_t offset, std::span<std::byte> to) {
    if (!cache_.read(opened_, offset, to)) throw std::runtime_error("a miss");
  }
  void native(std::uint64_t offset, std::span<std::byte> to) const {
    if (::pread(file_.get(), to.data(), to.size(), static_cast<off_t>(offset)) != static_cast<ssize_t>(to.size())) {
      throw std::system_error(errno, std::system_category(), "pread");
    }
  }
  void fill(std::uint64_t block) {
    Fill fill = cache_.fill(opened_, block, Admission::first_touch);
    if (!fill) return;
    native(fill.offset(), fill.memory());
    fill.publish(kBlock);
  }

 private:
  wherry::UniqueFd file_;
  struct ::stat status_{};
  Cache cache_;
  File opened_;
};

/// Per call, in ns.
double sample(double sample_ms, std::size_t size, const std::function<void(std::uint64_t, std::span<std::byte>)>& read,
              std::vector<std::byte>& buffer) {
  std::uint64_t calls = 0;
  std::uint64_t offset = 0;
  const std::uint64_t start = now_ns();
  std::uint64_t elapsed = 0;
  do {
    for (std::size_t i = 0; i < kFileBytes / size && i < 256; ++i, ++calls) {
      read(offset, std::span(buffer).first(size));
      offset = offset + 2 * size <= kFileBytes ? offset + size : 0;
    }
    elapsed = now_ns() - start;
  } while (static_cast<double>(elapsed) < sample_ms * 1e6);
  return static_cast<double>(elapsed) / static_cast<double>(calls);
}

struct Way {
  const char* name;
  std::function<void(std::uint64_t, std::span<std::byte>)> read;
};

/// Interleaved sample by sample, so that a disturbance hits all of them.
std::vector<Row> measure(const char* bench, const std::vector<Way>& ways, std::size_t size, bool rate,
                         const wherry::bench::Options& options) {
  std::vector<std::vector<double>> samples(ways.size());
  std::vector<std::byte> buffer(size);
  for (int i = 0; i < options.samples; ++i) {
    for (std::size_t way = 0; way < ways.size(); ++way) {
      const double ns = sample(options.smoke ? 1 : 20, size, ways[way].read, buffer);
      samples[way].push_back(rate ? static_cast<double>(size) / ns : ns);
    }
  }
  std::vector<Row> rows;
  fmt::print("{:>12} {:>8}", bench, wherry::bench::size_text(size));
  for (std::size_t way = 0; way < ways.size(); ++way) {
    Row row{.bench = bench, .system = ways[way].name, .mode = "", .size = size, .metric = rate ? "GB/s" : "ns"};
    summarise(row, samples[way]);
    fmt::print("  {} {:>7.2f} ±{:<5.2f}", ways[way].name, row.median, row.mad);
    rows.push_back(row);
  }
  fmt::print("\n");
  return rows;
}

std::vector<Row> run(const wherry::bench::Options& options) {
  Place place;
  std::vector<Row> rows;
  const auto add = [&](std::vector<Row> more) { rows.insert(rows.end(), more.begin(), more.end()); };
  const Way native{"pread", [&](std::uint64_t offset, std::span<std::byte> to) { place.native(offset, to); }};
  const Way hit{"hit", [&](std::uint64_t offset, std::span<std::byte> to) { place.hit(offset, to); }};
  for (const std::size_t size : {512, 4096, 16384, 65536, 1 << 20}) {
    add(measure("hit", {native, hit}, size, true, options));
  }
  const Way filled{"fill", [&](std::uint64_t offset, std::span<std::byte>) {
                     place.cache().drop(place.key(), offset, 1);
                     place.fill(offset / kBlock);
                   }};
  add(measure("fill", {native, filled}, kBlock, false, options));
  const Way change{"change", [&](std::uint64_t offset, std::span<std::byte> to) {
                     const Change noted(place.cache(), place.key(), offset, to.size());
                   }};
  const Way other{"other file", [&](std::uint64_t offset, std::span<std::byte> to) {
                    const Change noted(place.cache(), Key(1, 1), offset, to.size());
                  }};
  add(measure("change", {change, other}, 4096, false, options));
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Hits in the cache of files beside pread of the same file"};
  wherry::bench::Options options;
  add_options(app, options);
  return wherry::bench::run_benchmark(app, options, argc, argv, [&] {
    if (options.smoke) options.samples = 1;
    return run(options);
  });
}
