// SPDX-License-Identifier: Apache-2.0
#include "top/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/readable.hpp"
#include "base/unique_fd.hpp"
#include "common/json_text.hpp"
#include "common/table.hpp"

namespace wherry::tools {
namespace {

namespace fs = std::filesystem;
using file::Counts;

constexpr std::pair<const char*, std::uint64_t Counts::*> kNames[] = {
    {"hits", &Counts::hits},
    {"hit_bytes", &Counts::hit_bytes},
    {"misses", &Counts::misses},
    {"fills_served", &Counts::fills_served},
    {"fills", &Counts::fills},
    {"fills_again", &Counts::fills_again},
    {"lost_fills", &Counts::lost_fills},
    {"changes", &Counts::changes},
    {"drops", &Counts::drops},
    {"drop_alls", &Counts::drop_alls},
    {"kernels_first_touch", &Counts::kernels_first_touch},
    {"kernels_changed", &Counts::kernels_changed},
    {"kernels_writer", &Counts::kernels_writer},
    {"kernels_end", &Counts::kernels_end},
    {"kernels_other", &Counts::kernels_other},
};

std::uint64_t reads_of(const Counts& counts) {
  return counts.hits + counts.fills_served + counts.kernels_first_touch + counts.kernels_changed +
         counts.kernels_writer + counts.kernels_end + counts.kernels_other;
}

void add(Counts& sum, const Counts& more) {
  for (const auto& [name, counter] : kNames) sum.*counter += more.*counter;
}

std::string program_of(std::uint64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return printable(name);
}

void read_segment(const fs::path& path, const std::string& card, std::vector<FileClientReading>& clients) {
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  file::Segment segment;
  if (!file.valid() || file::map_segment(file.get(), segment)) return;
  const std::size_t used = file::Segment::used(segment.header().clients_used, layout::kFileMostClients);
  const std::size_t before = clients.size();
  for (std::uint64_t number = 1; number <= used; ++number) {
    const std::uint64_t pid = segment.client(number).pid.load(std::memory_order_relaxed);
    if (pid == 0) continue;
    // A program has the number of the one that executed it, which `wherry run` did as a client.
    const std::span here = std::span(clients).subspan(before);
    const auto same = std::ranges::find_if(here, [&](const auto& one) { return one.pid == pid; });
    if (same == here.end()) {
      clients.push_back({card, pid, program_of(pid), counts_of(segment, number)});
    } else {
      add(same->counts, counts_of(segment, number));
    }
  }
  ::munmap(segment.base(), segment.bytes());
}

/// The same client at another moment; null if it was none.
const FileClientReading* find(const FilesReading& reading, const FileClientReading& client) {
  const auto found = std::ranges::find_if(
      reading.clients, [&](const auto& one) { return one.card == client.card && one.pid == client.pid; });
  return found == reading.clients.end() ? nullptr : &*found;
}

struct FileRates {
  double reads = 0;  ///< per second
  double bytes = 0;  ///< of hits, per second
};

FileRates rates_of(const FilesReading& before, const FilesReading& now, const FileClientReading& client) {
  const FileClientReading* const earlier = find(before, client);
  if (earlier == nullptr || now.at_ns <= before.at_ns) return {};
  const double seconds = static_cast<double>(now.at_ns - before.at_ns) / 1e9;
  // A counter that runs backwards is another process of the same number.
  const auto rate = [seconds](std::uint64_t from, std::uint64_t to) {
    return to > from ? static_cast<double>(to - from) / seconds : 0;
  };
  return {.reads = rate(reads_of(earlier->counts), reads_of(client.counts)),
          .bytes = rate(earlier->counts.hit_bytes, client.counts.hit_bytes)};
}

std::vector<std::string> cells(std::string pid, const FileClientReading& client, const FileRates& rates) {
  const Counts& counts = client.counts;
  const std::uint64_t reads = reads_of(counts);
  return {std::move(pid),
          client.program,
          client.card,
          fmt::format("{:.0f}", rates.reads),
          human_bytes(rates.bytes) + "/s",
          std::to_string(reads),
          reads == 0 ? "-" : fmt::format("{}%", counts.hits * 100 / reads),
          human_bytes(static_cast<double>(counts.hit_bytes)),
          std::to_string(counts.fills),
          std::to_string(counts.fills_again),
          std::to_string(counts.lost_fills),
          std::to_string(counts.changes),
          std::to_string(counts.kernels_first_touch),
          std::to_string(counts.kernels_changed),
          std::to_string(counts.kernels_writer),
          std::to_string(counts.kernels_end),
          std::to_string(counts.kernels_other)};
}

struct Total {
  FileClientReading client;
  FileRates rates;
};

Total total_of(const FilesReading& before, const FilesReading& now) {
  Total total;
  for (const FileClientReading& client : now.clients) {
    add(total.client.counts, client.counts);
    const FileRates rates = rates_of(before, now, client);
    total.rates.reads += rates.reads;
    total.rates.bytes += rates.bytes;
  }
  return total;
}

nlohmann::json json_of(const Counts& counts, const FileRates& rates) {
  nlohmann::json object{{"reads", reads_of(counts)}, {"rates", {{"reads", rates.reads}, {"hit_bytes", rates.bytes}}}};
  for (const auto& [name, counter] : kNames) object[name] = counts.*counter;
  return object;
}

}  // namespace

FilesReading read_file_clients() {
  FilesReading reading;
  const std::string prefix = fmt::format("wherry-files-{}-", ::geteuid());
  std::error_code error;
  for (fs::directory_iterator entry("/dev/shm", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.starts_with(prefix)) read_segment(entry->path(), printable(name.substr(prefix.size())), reading.clients);
  }
  reading.at_ns = monotonic_ns();
  return reading;
}

std::string top_files_text(const FilesReading& before, const FilesReading& now, std::size_t lines,
                           std::size_t columns) {
  using enum Table::Align;
  Table table({{"PID", right},
               {"PROGRAM"},
               {"CARD"},
               {"READS/s", right},
               {"HITS", right},
               {"READS", right},
               {"HIT", right},
               {"BYTES", right},
               {"FILLS", right},
               {"AGAIN", right},
               {"LOST", right},
               {"CHANGES", right},
               {"FIRST", right},
               {"CHANGED", right},
               {"WRITER", right},
               {"END", right},
               {"OTHER", right}});
  const std::size_t all = now.clients.size();
  // The titles and the total are lines too, and so is the one that says what was cut.
  const std::size_t room = lines == 0 || all + 2 <= lines ? all : std::max<std::size_t>(lines, 4) - 3;
  for (std::size_t i = 0; i < room; ++i) {
    const FileClientReading& client = now.clients[i];
    table.row(cells(std::to_string(client.pid), client, rates_of(before, now, client)));
  }
  Total total = total_of(before, now);
  total.client.program = counted(all, "client");
  table.row(cells("all", total.client, total.rates));
  std::string text = table.text(columns);
  if (room < all) text += fmt::format("and {} more\n", all - room);
  return text;
}

std::string top_files_json(const FilesReading& before, const FilesReading& now) {
  const Total total = total_of(before, now);
  nlohmann::json object{
      {"at_ns", now.at_ns}, {"clients", nlohmann::json::array()}, {"total", json_of(total.client.counts, total.rates)}};
  for (const FileClientReading& client : now.clients) {
    nlohmann::json one = json_of(client.counts, rates_of(before, now, client));
    one["card"] = client.card;
    one["pid"] = client.pid;
    one["program"] = client.program;
    object["clients"].push_back(std::move(one));
  }
  return json_text(object, -1);
}

}  // namespace wherry::tools
