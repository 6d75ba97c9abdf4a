// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/mailbox/question.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/config.hpp"
#include "bench/harness/placement_probe.hpp"
#include "bench/harness/placement_watch.hpp"
#include "bench/systems/mailbox/systems.hpp"

namespace wherry::bench::mailbox {
namespace {

/// Of the one mailbox that many are connected to, however many these are: all their headers and as much again.
constexpr std::size_t kBudgetOfMany = std::size_t{384} << 10;
/// Of the messages whose reception is measured: they fit every header.
constexpr std::uint64_t kSmall = 8;

/// All systems with all numbers of processes started, so that they take turns.
class Contest {
 public:
  Contest(std::span<System* const> systems, std::span<const std::uint32_t> numbers,
          const std::function<std::size_t(std::uint32_t)>& budget) {
    for (System* system : systems) {
      const auto* own = dynamic_cast<const MailboxSystem*>(system);
      if (own == nullptr) {
        all_.push_back(system);
        continue;
      }
      for (const std::uint32_t number : numbers) {
        started_.push_back(std::make_unique<StartedMailboxes>(*own, Started{number, budget(number)}));
        all_.push_back(started_.back().get());
      }
    }
  }

  [[nodiscard]] const std::vector<System*>& systems() const { return all_; }

 private:
  std::vector<std::unique_ptr<StartedMailboxes>> started_;
  std::vector<System*> all_;
};

std::vector<Row> run(const Options& options, const std::vector<System*>& systems, const std::vector<Point>& points,
                     Circumstances& circumstances) {
  const std::vector<int> cores = cores_to_probe(options).cores;
  Campaign campaign(options, systems, points, cores.empty() ? Prober() : probe_between({cores[0], cores[1]}));
  std::vector<Row> rows = campaign.run();
  const std::vector<Failure> before = std::move(circumstances.failures);
  circumstances = campaign.circumstances();
  circumstances.failures.insert(circumstances.failures.begin(), before.begin(), before.end());
  return rows;
}

std::string check_budget(const std::string& text) {
  try {
    return config::parse_bytes("--budget", text) > 0 ? "" : "it must be more than 0 bytes";
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::vector<std::uint32_t> receivers_of(const Options& options) {
  if (!options.mailbox.connected.empty()) return options.mailbox.connected;
  return options.smoke ? std::vector<std::uint32_t>{2, 10} : std::vector<std::uint32_t>{2, 10, 100, 1000};
}

}  // namespace

void add_options(CLI::App& command, Options& options) {
  command
      .add_option_function<std::string>(
          "--budget",
          [&options](const std::string& text) { options.mailbox.budget = config::parse_bytes("--budget", text); },
          "Bytes of all mailboxes together, however many there are")
      ->default_str("384K")
      ->check(check_budget);
  command
      .add_option("--connected", options.mailbox.connected,
                  "How many senders are connected, of which one sends, where the cost of a message is measured; "
                  "default: 2,10,100,1000")
      ->delimiter(',')
      ->check(CLI::Range(1U, 1000U));
}

std::vector<Point> points(const Options& options) {
  std::vector<Point> found;
  for (const std::string& mode : options.modes) {
    for (const Question question : {Question::stream, Question::latency}) {
      for (const std::uint64_t size : options.sizes) {
        found.push_back({"mailbox",
                         {.question = question,
                          .size = size,
                          .touched = mode == "touched",
                          .cores = options.cores,
                          .timeout_seconds = options.smoke ? 100.0 : 60.0}});
      }
    }
  }
  return found;
}

std::vector<Row> measure(const Options& options, std::span<System* const> systems, Circumstances& circumstances) {
  const Contest neighbours(systems, options.senders,
                           [&](std::uint32_t started) { return options.mailbox.budget / started; });
  std::vector<Row> rows = run(options, neighbours.systems(), points(options), circumstances);
  complete(rows);
  std::vector<System*> mailboxes;
  std::copy_if(systems.begin(), systems.end(), std::back_inserter(mailboxes),
               [](const System* system) { return system->question() == "mailbox"; });
  std::vector<std::uint32_t> started = receivers_of(options);
  for (std::uint32_t& one : started) ++one;  // The receiver.
  const Contest many(mailboxes, started, [](std::uint32_t) { return kBudgetOfMany; });
  const Point small{"mailbox", {.size = kSmall, .cores = options.cores, .timeout_seconds = 100}};
  std::vector<Row> receptions = run(options, many.systems(), {small}, circumstances);
  complete(receptions);
  std::vector<Row> costs = receive_costs(receptions);
  rows.insert(rows.end(), costs.begin(), costs.end());
  return rows;
}

}  // namespace wherry::bench::mailbox
