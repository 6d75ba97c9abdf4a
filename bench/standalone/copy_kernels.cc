// SPDX-License-Identifier: Apache-2.0
//
// Which kernel is the fastest through memory that two cores share? One copies messages into a ring, the other out of
// it; the ring fits into the L2 of a core, or is larger than both. Hand-over in GB/s, and half a round trip in ns. A
// virtual machine's two cores may share an L3 now and none a second later: each figure stands beside the time that a
// bare cache line takes, and samples of which that differs much from most are left out.
//
// From which size on should a copy bypass the caches? One core copies blocks of one size with every kernel, from and to
// memory that is used again and again (hot: its data is in the caches as far as it fits) or walks through a large pool
// (cold: neither the source nor the destination is in the inner caches). "touched" also writes the source before and
// reads the destination after each copy, which is what a program does with its data.
#include <fmt/format.h>
#include <sched.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "arch/copy.hpp"
#include "arch/shared_copy.hpp"
#include "base/config.hpp"
#include "bench/harness/placement_watch.hpp"
#include "bench/harness/report.hpp"
#include "bench/standalone/between_cores.hpp"

namespace {

using wherry::arch::SharedCopy;
using wherry::arch::StreamingKernel;
using wherry::bench::PlacementWatch;
using wherry::bench::Row;

struct Options {
  std::vector<std::string> sizes{"64", "256", "1K", "4K", "16K", "64K", "256K", "512K",
                                 "1M", "2M",  "4M", "8M", "16M", "32M", "64M",  "128M"};
  std::string pool = "256M";
  std::vector<std::string> messages{"64", "256", "1K", "4K", "16K", "64K", "1M"};
  std::vector<std::string> rings{"64K", "1M", "2M", "4M"};
  std::vector<std::string> kernels;
  std::string part = "both";
  int samples = 7;
  double sample_ms = 10;
  int core = -1;
  std::string json;
  bool smoke = false;
};

// Two pools of whole blocks; block 0 again and again is hot, the next block each time is cold.
class Pools {
 public:
  explicit Pools(std::size_t bytes) : bytes_(bytes), source_(bytes), destination_(bytes) {}

  void advance(std::size_t size, bool cold) { at_ = cold && at_ + 2 * size <= bytes_ ? at_ + size : 0; }
  void restart() { at_ = 0; }
  std::byte* source() { return source_.data() + at_; }
  std::byte* destination() { return destination_.data() + at_; }

 private:
  std::size_t bytes_;
  std::size_t at_ = 0;
  std::vector<std::byte> source_;
  std::vector<std::byte> destination_;
};

std::uint64_t sum(const std::byte* bytes, std::size_t size) {
  std::uint64_t total = 0;
  for (std::size_t at = 0; at + 8 <= size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, sizeof(word));
    total += word;
  }
  return total;
}

volatile std::uint64_t g_sink = 0;  // an unused result may be optimised away

void one_copy(const StreamingKernel& kernel, Pools& pools, std::size_t size, bool touched) {
  if (touched) std::memset(pools.source(), static_cast<int>(size), size);
  kernel.copy(pools.destination(), pools.source(), size);
  if (touched) g_sink = g_sink + sum(pools.destination(), size);
}

// The thread's own CPU time: programs that take turns with this one then cost it bandwidth, which they do anywhere, but
// not whole time slices.
std::uint64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// GB/s of payload, over at least `sample_ms`.
double sample(const StreamingKernel& kernel, Pools& pools, std::size_t size, bool cold, bool touched,
              double sample_ms) {
  const std::uint64_t copies_per_look = std::max<std::uint64_t>(1, 65536 / size);
  std::uint64_t copies = 0;
  pools.restart();
  const std::uint64_t start = thread_cpu_ns();
  std::uint64_t elapsed = 0;
  do {
    for (std::uint64_t i = 0; i < copies_per_look; ++i) {
      one_copy(kernel, pools, size, touched);
      pools.advance(size, cold);
    }
    copies += copies_per_look;
    elapsed = thread_cpu_ns() - start;
  } while (static_cast<double>(elapsed) < sample_ms * 1e6);
  return static_cast<double>(copies * size) / static_cast<double>(elapsed);
}

// All kernels at one size, interleaved sample by sample, so that a disturbance hits all of them.
std::vector<Row> measure(const std::vector<StreamingKernel>& kernels, Pools& pools, std::size_t size, bool cold,
                         bool touched, const Options& options) {
  std::vector<std::vector<double>> samples(kernels.size());
  for (int i = 0; i < options.samples; ++i) {
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      samples[k].push_back(sample(kernels[k], pools, size, cold, touched, options.sample_ms));
    }
  }
  std::vector<Row> rows;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    Row row{.bench = cold ? "copy_cold" : "copy_hot",
            .system = kernels[k].name,
            .mode = touched ? "touched" : "handover",
            .size = size,
            .metric = "GB/s"};
    summarise(row, samples[k]);
    rows.push_back(row);
  }
  return rows;
}

void print(const std::vector<Row>& rows) {
  fmt::print("{:>10}", wherry::bench::size_text(rows.front().size));
  for (const Row& row : rows) fmt::print("  {:>7.2f} ±{:<5.2f}", row.median, row.mad);
  fmt::print("\n");
  std::fflush(stdout);
}

// Every kernel and, as "chosen", the call that the library makes.
std::vector<SharedCopy> kernels_between(const Options& options) {
  std::vector<SharedCopy> kernels{{"chosen", wherry::arch::copy_into_shared, wherry::arch::copy_out_of_shared}};
  const auto all = wherry::arch::shared_copies();
  kernels.insert(kernels.end(), all.begin(), all.end());
  const auto unwanted = [&](const SharedCopy& kernel) {
    return !options.kernels.empty() && std::ranges::find(options.kernels, kernel.name) == options.kernels.end();
  };
  std::erase_if(kernels, unwanted);
  if (kernels.empty()) throw std::runtime_error("no such kernel here");
  return kernels;
}

// The samples of one kernel at one point.
struct Samples {
  std::vector<double> figures;
  std::vector<PlacementWatch::Around> around;

  // Those that were taken while the two cores were placed as for most probes; all, if none was.
  [[nodiscard]] std::vector<double> usual(PlacementWatch& watch) const {
    std::vector<double> some;
    for (std::size_t i = 0; i < figures.size(); ++i) {
      if (watch.counts(around[i])) some.push_back(figures[i]);
    }
    return some;
  }
};

template <class Figure>
std::vector<Row> measure_between(const std::vector<SharedCopy>& kernels, const Options& options, PlacementWatch& watch,
                                 Row row, Figure&& figure) {
  std::vector<Samples> samples(kernels.size());
  const auto wanted = static_cast<std::size_t>(options.samples);
  const auto enough = [&](const Samples& some) {
    return some.usual(watch).size() >= wanted || some.figures.size() >= 3 * wanted;
  };
  while (!std::ranges::all_of(samples, enough)) {
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const std::size_t before = watch.before();
      samples[k].figures.push_back(figure(kernels[k]));
      samples[k].around.push_back({before, watch.after()});
    }
  }
  std::vector<Row> rows;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    row.system = kernels[k].name;
    const auto usual = samples[k].usual(watch);
    summarise(row, usual.empty() ? samples[k].figures : usual);
    rows.push_back(row);
  }
  return rows;
}

// One table: messages through one ring.
void run_between(const Options& options, PlacementWatch& watch, std::size_t ring, bool latency, std::vector<Row>& all) {
  const auto kernels = kernels_between(options);
  fmt::print("\nbetween two cores, {} of {}: {}, median ± median absolute deviation of {}\n{:>10}",
             latency ? "rings" : "ring", wherry::bench::size_text(ring),
             latency ? "ns of half a round trip" : "GB/s of payload", options.samples, "");
  for (const SharedCopy& kernel : kernels) fmt::print("  {:>14}", kernel.name);
  fmt::print("\n");
  for (const std::string& text : options.messages) {
    const auto size = static_cast<std::size_t>(wherry::config::parse_bytes("--messages", text));
    if (size == 0 || (latency && 2 * size > ring)) continue;
    const Row row{.bench = "copy_between",
                  .mode = "ring of " + wherry::bench::size_text(ring),
                  .size = size,
                  .metric = latency ? "ns_p50" : "GB/s"};
    const auto rows = measure_between(kernels, options, watch, row, [&](const SharedCopy& kernel) {
      return latency ? wherry::bench::half_round_trip(kernel, ring, size, options.sample_ms)
                     : wherry::bench::hand_over_rate(kernel, ring, size, options.sample_ms);
    });
    print(rows);
    all.insert(all.end(), rows.begin(), rows.end());
  }
}

void run_between(const Options& options, std::vector<Row>& all) {
  const auto cores = wherry::bench::two_cores();
  if (cores[0] == cores[1]) {
    fmt::print("between two cores: left out, this program may run on one only\n");
    return;
  }
  PlacementWatch watch(wherry::bench::probe_between(cores));
  for (const bool latency : {false, true}) {
    for (const std::string& text : options.rings) {
      const auto ring = static_cast<std::size_t>(wherry::config::parse_bytes("--rings", text));
      if (ring < 4096) throw std::runtime_error("use rings of at least 4K");
      run_between(options, watch, ring, latency, all);
    }
  }
  fmt::print("\n{}\n", text_of(wherry::bench::PlacementSummary{.cores = {cores[0], cores[1]}, .found = watch.found()}));
}

void run_within(const Options& options, std::vector<Row>& all) {
  if (options.core >= 0) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<unsigned>(options.core), &cores);
    if (sched_setaffinity(0, sizeof(cores), &cores) != 0) throw std::runtime_error("cannot run on that core");
  }
  std::vector<StreamingKernel> kernels{{"cached", wherry::arch::copy_cached}};
  const auto streaming = wherry::arch::streaming_kernels();
  kernels.insert(kernels.end(), streaming.begin(), streaming.end());
  std::size_t largest = wherry::config::parse_bytes("--pool", options.pool);
  for (const std::string& size : options.sizes) {
    largest = std::max<std::size_t>(largest, wherry::config::parse_bytes("--sizes", size));
  }
  Pools pools(largest);
  for (const bool touched : {false, true}) {
    for (const bool cold : {false, true}) {
      fmt::print("\n{}, {}: GB/s of payload, median ± median absolute deviation of {}\n{:>10}", cold ? "cold" : "hot",
                 touched ? "written before and read after" : "copied only", options.samples, "");
      for (const StreamingKernel& kernel : kernels) fmt::print("  {:>14}", kernel.name);
      fmt::print("\n");
      for (const std::string& text : options.sizes) {
        const auto size = wherry::config::parse_bytes("--sizes", text);
        const auto rows = measure(kernels, pools, size, cold, touched, options);
        print(rows);
        all.insert(all.end(), rows.begin(), rows.end());
      }
    }
  }
}

int run(Options options) {
  if (options.smoke) {
    options.sizes = {"64", "64K", "1M"};
    options.messages = {"64", "4K"};
    options.rings = {"64K"};
    options.pool = "4M";
    options.samples = 1;
    options.sample_ms = 1;
  }
  std::vector<Row> all;
  if (options.part != "one-core") run_between(options, all);
  if (options.part != "two-cores") run_within(options, all);
  if (!options.json.empty()) write_json(options.json, all);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures the copy kernels."};
  app.add_option("--sizes", options.sizes, "Bytes of one copy, such as 64,4K,1M")->delimiter(',');
  app.add_option("--messages", options.messages, "Bytes of one message between two cores")->delimiter(',');
  app.add_option("--rings", options.rings, "Bytes of the memory that they go through")->delimiter(',');
  app.add_option("--kernels", options.kernels,
                 "Kernels to compare between two cores; all that this CPU has if not given")
      ->delimiter(',');
  app.add_option("--part", options.part, "What to measure")->check(CLI::IsMember({"two-cores", "one-core", "both"}));
  app.add_option("--pool", options.pool,
                 "Bytes that a cold measurement walks through, each for source and destination");
  app.add_option("--samples", options.samples, "Samples of each figure")->check(CLI::Range(1, 1000));
  app.add_option("--sample-ms", options.sample_ms, "Least duration of one sample, in milliseconds");
  app.add_option("--core", options.core, "Core to run on; -1: any");
  app.add_option("--json", options.json, "Also write the figures to this file; -: standard output");
  app.add_flag("--smoke", options.smoke, "One second: that it runs, not what it measures");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "copy_kernels: {}\n", error.what());
    return 1;
  }
}
