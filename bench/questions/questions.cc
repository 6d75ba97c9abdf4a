// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/harness/table.hpp"

namespace wherry::bench {
namespace {

constexpr std::uint64_t kKiB = 1 << 10;
constexpr std::uint64_t kMiB = 1 << 20;

bool wanted(const Options& options, const char* mode) {
  return std::find(options.modes.begin(), options.modes.end(), mode) != options.modes.end();
}

void append(std::vector<Point>& points, const std::string& bench, const Options& options, Question question,
            std::uint32_t senders) {
  for (const bool touched : {false, true}) {
    if (!wanted(options, touched ? "touched" : "handover")) continue;
    for (const std::uint64_t size : options.sizes) {
      points.push_back(
          {bench,
           {.question = question, .size = size, .senders = senders, .touched = touched, .cores = options.cores}});
    }
  }
}

std::string mode_text(const std::string& mode) {
  return mode == "touched" ? "payload written by the producer and read by the consumer" : "hand-over alone";
}

std::string throughput_tables(std::span<const Row> rows, const std::string& bench, const std::string& mode,
                              std::uint32_t senders) {
  const std::string whom = senders == 1 ? "one sender" : fmt::format("{} senders", senders);
  const auto one = [&](const std::string& title, const std::string& metric, double unit, bool high, bool ratios) {
    return table(rows, {.title = fmt::format("{} ({}, {})", title, whom, mode_text(mode)),
                        .bench = bench,
                        .mode = mode,
                        .senders = senders,
                        .metric = metric,
                        .unit = unit,
                        .highest_is_best = high,
                        .ratios = ratios});
  };
  std::string text = one("GB/s", "GB/s", 1, true, true);
  text += one("million messages/s", "msgs/s", 1e6, true, mode == "handover");
  text += one("CPU seconds per GB", "cpu_s_per_GB", 1, false, false);
  text += one("context switches per GB", "switches_per_GB", 1, false, false);
  text += one("memory per sender, MB, of all processes together", "memory_bytes_per_connection", 1e6, false, false);
  return text;
}

std::vector<Point> stream_points(const Options& options) {
  std::vector<Point> points;
  append(points, "stream", options, Question::stream, 1);
  return points;
}

std::string stream_tables(std::span<const Row> rows, const Options& options) {
  std::string text;
  for (const std::string& mode : options.modes) text += throughput_tables(rows, "stream", mode, 1);
  return text;
}

const std::array kQuestions{
    Asked{"stream",
          "One sender, one receiver: how many bytes and messages a second",
          {64, 4 * kKiB, 64 * kKiB, kMiB, 16 * kMiB, 128 * kMiB},
          {64, 64 * kKiB, kMiB},
          {1},
          stream_points,
          stream_tables},
};

}  // namespace

std::span<const Asked> questions() { return kQuestions; }

}  // namespace wherry::bench
