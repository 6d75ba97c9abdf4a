// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/harness/connect_trial.hpp"
#include "bench/harness/table.hpp"
#include "bench/questions/connect.hpp"
#include "bench/questions/file/question.hpp"
#include "bench/questions/mailbox/question.hpp"
#include "bench/questions/mpi/question.hpp"
#include "bench/questions/root/question.hpp"
#include "bench/questions/seeds.hpp"

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
      points.push_back({bench,
                        {.question = question,
                         .size = size,
                         .senders = senders,
                         .touched = touched,
                         .cores = options.cores,
                         .timeout_seconds = options.smoke ? 100.0 : 30.0}});
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
  text += one("GB/s of the first lap of a ring or pool", "first_lap_GB/s", 1, true, true);
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

std::vector<Point> latency_points(const Options& options) {
  std::vector<Point> points;
  append(points, "latency", options, Question::latency, 1);
  append(points, "latency", options, Question::asleep, 1);
  return points;
}

std::string latency_tables(std::span<const Row> rows, const Options& options) {
  struct Kind {
    const char* prefix;
    const char* text;
  };
  std::string text;
  for (const std::string& mode : options.modes) {
    for (const Kind kind :
         {Kind{"ns_", "both awake, half of a round trip"}, Kind{"asleep_ns_", "one way to a process that sleeps"}}) {
      for (const char* share : {"p50", "p99", "p99.9", "max"}) {
        text += table(rows, {.title = fmt::format("{}: {} in us ({})", share, kind.text, mode_text(mode)),
                             .bench = "latency",
                             .mode = mode,
                             .metric = std::string(kind.prefix) + share,
                             .unit = 1e3,
                             .highest_is_best = false,
                             .ratios = share == std::string("p50")});
      }
    }
  }
  return text;
}

std::vector<Point> many_points(const Options& options) {
  std::vector<Point> points;
  for (const std::uint32_t senders : options.senders) append(points, "many", options, Question::stream, senders);
  return points;
}

std::string many_tables(std::span<const Row> rows, const Options& options) {
  std::string text;
  for (const std::uint32_t senders : options.senders) {
    for (const std::string& mode : options.modes) text += throughput_tables(rows, "many", mode, senders);
  }
  return text;
}

std::vector<Point> idle_points(const Options& options) {
  std::vector<Point> points;
  for (const std::uint32_t connections : options.senders) {
    const std::size_t before = points.size();
    append(points, "idle", options, Question::stream, 1);
    for (std::size_t i = before; i < points.size(); ++i) points[i].sample.idle = connections - 1;
  }
  return points;
}

std::string idle_tables(std::span<const Row> rows, const Options& options) {
  std::string text;
  for (const std::uint32_t connections : options.senders) {
    for (const std::string& mode : options.modes) {
      text += table(rows, {.title = fmt::format("million messages/s on the busy one of {} connections ({})",
                                                connections, mode_text(mode)),
                           .bench = "idle",
                           .mode = mode,
                           .senders = connections,
                           .metric = "msgs/s",
                           .unit = 1e6,
                           .ratios = true});
    }
  }
  return text;
}

std::vector<Point> limit_points(const Options& options) {
  std::vector<Point> points;
  append(points, "limit", options, Question::stream, 1);
  Options small = options;
  small.sizes = {64};
  append(points, "limit", small, Question::latency, 1);
  append(points, "limit", small, Question::asleep, 1);
  return points;
}

std::string limit_tables(std::span<const Row> rows, const Options& options) {
  std::string text;
  for (const std::string& mode : options.modes) text += throughput_tables(rows, "limit", mode, 1);
  for (const std::string prefix : {"ns_", "asleep_ns_"}) {
    for (const std::string share : {"p50", "p99", "p99.9"}) {
      text += table(rows, {.title = fmt::format("{} in us, {}", share, prefix == "ns_" ? "both awake" : "from sleep"),
                           .bench = "limit",
                           .mode = "handover",
                           .metric = prefix + share,
                           .unit = 1e3,
                           .highest_is_best = false});
    }
  }
  return text;
}

std::vector<Point> scif_points(const Options& options) {
  std::vector<Point> points;
  append(points, "scif", options, Question::stream, 1);
  Options small = options;
  std::erase_if(small.sizes, [](std::uint64_t size) { return size > 4 * kKiB; });
  small.sizes.insert(small.sizes.begin(), 8);
  append(points, "scif", small, Question::latency, 1);
  return points;
}

std::string scif_tables(std::span<const Row> rows, const Options& options) {
  std::string text;
  for (const std::string& mode : options.modes) text += throughput_tables(rows, "scif", mode, 1);
  for (const std::string share : {"p50", "p99", "p99.9"}) {
    text += table(rows, {.title = fmt::format("{} of half a round trip, in us", share),
                         .bench = "scif",
                         .mode = "handover",
                         .metric = "ns_" + share,
                         .unit = 1e3,
                         .highest_is_best = false,
                         .ratios = share == "p50"});
  }
  return text;
}

std::vector<Point> zmq_points(const Options& options) {
  std::vector<Point> points;
  append(points, "zmq", options, Question::stream, 1);
  Options small = options;
  std::erase_if(small.sizes, [](std::uint64_t size) { return size > kMiB; });
  append(points, "zmq", small, Question::latency, 1);
  return points;
}

std::string zmq_tables(std::span<const Row> rows, const Options& options) {
  std::string text;
  for (const std::string& mode : options.modes) {
    const auto add = [&](const std::string& title, const std::string& metric, double unit, bool high) {
      text += table(rows, {.title = fmt::format("{} ({})", title, mode_text(mode)),
                           .bench = "zmq",
                           .mode = mode,
                           .metric = metric,
                           .unit = unit,
                           .highest_is_best = high,
                           .compared = "zmq-wherry",
                           .compared_to = {"zmq-tcp", "zmq-ipc", "wherry"},
                           .spread = true});
    };
    add("GB/s", "GB/s", 1, true);
    add("thousand messages/s", "msgs/s", 1e3, true);
    add("CPU seconds per GB", "cpu_s_per_GB", 1, false);
    add("context switches per GB", "switches_per_GB", 1, false);
    add("mean of half a round trip, in us", "ns_mean", 1e3, false);
  }
  return text;
}

bool is_between_hosts(const std::string& system, const std::string& made_for) {
  return made_for == "net" && system.starts_with("net-");
}

void add_net_options(CLI::App& command, Options& options) {
  CLI::Option* const listen = command.add_flag("--listen", options.net.listens,
                                               "Between real hosts: serve `wherry bench net --connect` of another host "
                                               "until interrupted");
  command
      .add_option("--connect", options.net.connect,
                  "Between real hosts: measure with HOST, on which `wherry bench net --listen` runs")
      ->type_name("HOST")
      ->excludes(listen);
  command.add_option("--port", options.net.port, "TCP port by which the two programs meet")
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
}

std::vector<Point> net_points(const Options& options) {
  std::vector<Point> points;
  Options large = options;
  std::erase_if(large.sizes, [](std::uint64_t size) { return size < 4 * kKiB; });
  append(points, "net", large, Question::stream, 1);
  Options small = options;
  std::erase_if(small.sizes, [](std::uint64_t size) { return size > 4 * kKiB; });
  append(points, "net", small, Question::latency, 1);
  append(points, "net", small, Question::asleep, 1);
  return points;
}

std::string net_tables(std::span<const Row> rows, const Options& options) {
  std::string text;
  for (const std::string& mode : options.modes) {
    const auto add = [&](const std::string& title, const std::string& metric, double unit, bool high) {
      text += table(rows, {.title = fmt::format("{} ({})", title, mode_text(mode)),
                           .bench = "net",
                           .mode = mode,
                           .metric = metric,
                           .unit = unit,
                           .highest_is_best = high,
                           .compared = "net-wherry",
                           .compared_to = {"net-ofi-ring", "net-zmq-tcp", "net-nng-tcp", "net-tcp"},
                           .spread = true});
    };
    add("GB/s", "GB/s", 1, true);
    add("thousand messages/s", "msgs/s", 1e3, true);
    add("CPU seconds per GB", "cpu_s_per_GB", 1, false);
    add("half of a round trip in us, both awake", "ns_p50", 1e3, false);
    add("one way in us, to a process that sleeps", "asleep_ns_p50", 1e3, false);
  }
  return text;
}

std::vector<Point> python_points(const Options& options) {
  std::vector<Point> points;
  append(points, "python", options, Question::stream, 1);
  return points;
}

std::string python_tables(std::span<const Row> rows, const Options& options) {
  std::string text;
  for (const std::string& mode : options.modes) {
    const auto add = [&](const std::string& title, const std::string& metric, double unit, bool high) {
      text += table(rows,
                    {.title = fmt::format("{} ({})", title, mode_text(mode)),
                     .bench = "python",
                     .mode = mode,
                     .metric = metric,
                     .unit = unit,
                     .highest_is_best = high,
                     .compared = "python-wherry",
                     .compared_to = {"python-pyzmq-tcp", "python-pyzmq-ipc", "python-iceoryx2", "python-shared-memory"},
                     .spread = true});
    };
    add("thousand arrays/s", "msgs/s", 1e3, true);
    add("GB/s", "GB/s", 1, true);
    add("CPU seconds per GB", "cpu_s_per_GB", 1, false);
  }
  return text;
}

const std::array kQuestions{
    Asked{.name = "stream",
          .help = "One sender, one receiver: how many bytes and messages a second",
          .sizes = {64, 4 * kKiB, 64 * kKiB, kMiB, 16 * kMiB, 128 * kMiB},
          .smoke = {64, 64 * kKiB},
          .points = stream_points,
          .tables = stream_tables},
    Asked{.name = "latency",
          .help = "Two processes throw a message to and fro, awake and from sleep",
          .sizes = {8, 64, kKiB, 4 * kKiB, 64 * kKiB},
          .smoke = {64},
          .modes = {"handover"},
          .points = latency_points,
          .tables = latency_tables},
    Asked{.name = "many",
          .help = "Many senders, one receiver: bytes a second and memory",
          .sizes = {64 * kKiB, 2 * kMiB, 8 * kMiB},
          .smoke = {64 * kKiB},
          .senders = {8, 60},
          .smoke_senders = {4},
          .points = many_points,
          .tables = many_tables},
    Asked{.name = "idle",
          .help = "One busy connection among many idle ones: whether the receiver looks for it or is told",
          .sizes = {64, 64 * kKiB},
          .smoke = {64},
          .senders = {2, 1000},
          .smoke_senders = {10},
          .modes = {"handover"},
          .senders_option = "--connections",
          .senders_help = "How many connections the receiver has, one of them busy",
          .most_senders = kMostConnections,
          .points = idle_points,
          .tables = idle_tables},
    Asked{.name = "connect",
          .help = "What a connection costs: time, memory, descriptors",
          .senders = {1, 10, 100, 1000},
          .smoke_senders = {1, 10},
          .modes = {"handover"},
          .senders_option = "--connections",
          .senders_help = "How many connections there are in the end",
          .most_senders = kMostConnections,
          .without = {{"--sizes", "nothing is sent"},
                      {"--bytes", "nothing is sent"},
                      {"--seconds", "a sample is one connection after the other, --connections of them"},
                      {"--cores", "nobody is kept on a core"}},
          .measure = measure_connections,
          .tables = connect_tables},
    Asked{.name = "scif",
          .help = "SCIF: messages, one-sided writes and reads, stores through a mapping",
          .sizes = {64, 4 * kKiB, 64 * kKiB, kMiB, 16 * kMiB, 128 * kMiB},
          .smoke = {64, 64 * kKiB},
          .modes = {"handover"},
          .beside = {"tcp", "limit:memcpy-1", "limit:cache-line"},
          .points = scif_points,
          .tables = scif_tables},
    Asked{.name = "zmq",
          .help = "ZeroMQ over Wherry, tcp and ipc by libzmq's own programs; nanomsg, nng and the native stream",
          .sizes = {64, kKiB, 4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB, 128 * kMiB},
          .smoke = {64, 64 * kKiB},
          .modes = {"handover"},
          .beside = {"wherry", "nanomsg-tcp", "nanomsg-ipc", "nng-tcp", "nng-ipc"},
          .seconds = 2,
          .points = zmq_points,
          .tables = zmq_tables},
    Asked{.name = "root",
          .help = "ROOT: workers hand files to a server that merges them; transfer, filling, merging",
          .sizes = {64 * kKiB, 2 * kMiB, 8 * kMiB},
          .smoke = {64 * kKiB},
          .senders = {4, 1, 16, 60},
          .smoke_senders = {2},
          .modes = {},
          .own_only = true,
          .bytes = "128M",
          .senders_option = "--workers",
          .senders_help = "How many workers; the first number is also that for the sizes",
          .without = {{"--seconds", "a sample is as long as its files take: --files, or --bytes"},
                      {"--cores", "there are more workers than cores, and nobody is kept on one"}},
          .measure = root::measure,
          .add_options = root::add_options,
          .tables = root::tables},
    Asked{.name = "file",
          .help = "Files: one program's reads and writes, natively and by each of Wherry's paths",
          .sizes = {512, kKiB, 4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB},
          .smoke = {4 * kKiB},
          .senders = {1, 2, 8, 48},
          .smoke_senders = {1, 2},
          .modes = {},
          .own_only = true,
          .seconds = 0.05,
          .bytes = "16M",
          .bytes_help = "Size of the file; of several processes, of their files together",
          .senders_option = "--processes",
          .senders_help = "How many processes, each with a file of its own; the first number is that for the sizes",
          .without = {{"--cores", "there are more processes than cores, and nobody is kept on one"}},
          .measure = file::measure,
          .add_options = file::add_options,
          .tables = file::tables},
    Asked{
        .name = "mailbox",
        .help =
            "Mailboxes: two processes that talk, of 2 to 96 that are started, by how the receiver's buffer is divided",
        .sizes = {4, 64, kKiB, 4 * kKiB, 64 * kKiB, kMiB, 4 * kMiB},
        .smoke = {64, 64 * kKiB},
        .senders = {2, 12, 24, 48, 96},
        .smoke_senders = {2, 6},
        .modes = {"handover"},
        .own_only = true,
        .beside = {"wherry"},
        .seconds = 0.1,
        .senders_option = "--started",
        .senders_help = "How many processes have mailboxes, each connected to both that talk",
        .least_senders = 2,
        .measure = mailbox::measure,
        .add_options = mailbox::add_options,
        .tables = mailbox::tables},
    Asked{.name = "mpi",
          .help = "MPI: one program over Wherry, over each MPI's own shared memory and over other libfabric providers",
          .sizes = {8, 64, kKiB, 4 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB},
          .smoke = {8, 64 * kKiB},
          .senders = {2, 48},
          .smoke_senders = {4},
          .modes = {},
          .own_only = true,
          .seconds = 0.05,
          .senders_option = "--ranks",
          .senders_help = "How many ranks; of more than two, all but two are idle in latency and bandwidth",
          .least_senders = 2,
          .without = {{"--bytes", "a sample is as long as --seconds"},
                      {"--cores", "two ranks are kept on the first two cores, more on none"}},
          .measure = mpi::measure,
          .add_options = mpi::add_options,
          .tables = mpi::tables},
    Asked{.name = "net",
          .help = "Two hosts, or two network namespaces of this machine: Wherry, libfabric, ZeroMQ, nng and TCP",
          .sizes = {8, 64, kKiB, 4 * kKiB, 64 * kKiB, kMiB},
          .smoke = {64, 64 * kKiB},
          .modes = {"handover"},
          .chooses = is_between_hosts,
          .points = net_points,
          .add_options = add_net_options,
          .tables = net_tables},
    Asked{.name = "python",
          .help = "Arrays from one Python process to another, by Wherry's package, pyzmq, iceoryx2 and shared memory",
          .sizes = {4 * kKiB, 64 * kKiB, kMiB, 16 * kMiB},
          .smoke = {4 * kKiB, kMiB},
          .own_only = true,
          .points = python_points,
          .tables = python_tables},
    Asked{.name = "limit",
          .help = "What this machine's memory can do: the simplest programs that do only one thing",
          .sizes = {64, 4 * kKiB, 64 * kKiB, kMiB, 16 * kMiB, 128 * kMiB},
          .smoke = {64, 64 * kKiB},
          .limits_only = true,
          .points = limit_points,
          .tables = limit_tables},
    Asked{.name = "seeds",
          .help = "The publications that Wherry goes back to: their figures beside the same question on this machine",
          .modes = {},
          .chooses = seeds::chooses,
          .without = {{"--sizes", "each publication has its own"},
                      {"--bytes", "each publication has its own"},
                      {"--seconds", "each question has its own"},
                      {"--systems", "each publication has its own; --seeds chooses among them"}},
          .measure = seeds::measure,
          .add_options = seeds::add_options,
          .tables = seeds::tables},
};

}  // namespace

std::span<const Asked> questions() { return kQuestions; }

}  // namespace wherry::bench
