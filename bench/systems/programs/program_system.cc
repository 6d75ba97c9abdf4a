// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/programs/program_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "bench/harness/programs/usage.hpp"

namespace wherry::bench {
namespace {

const char* word_of(Question question) {
  switch (question) {
    case Question::stream:
      return "stream";
    case Question::latency:
      return "latency";
    case Question::asleep:
      break;
  }
  return "asleep";
}

std::vector<double> numbers_in(const std::string& text) {
  std::istringstream words(text);
  std::vector<double> numbers;
  for (double number = 0; words >> number;) numbers.push_back(number);
  if (!words.eof()) throw std::runtime_error(fmt::format("not a list of numbers: '{:.80}'", text));
  return numbers;
}

/// What the program found: seconds, or one way's nanoseconds of each round trip.
void read_result(const std::string& text, const Sample& sample, Outcome& outcome) {
  std::vector<double> numbers = numbers_in(text);
  const std::size_t wanted = sample.question == Question::stream ? 1 : sample.messages;
  const bool positive = std::all_of(numbers.begin(), numbers.end(), [](double one) { return one > 0; });
  if (numbers.size() < wanted || !positive) throw std::runtime_error("the program's result makes no sense");
  if (sample.question == Question::stream) {
    outcome.seconds = numbers[0];
    return;
  }
  for (const double one : numbers) outcome.seconds += one * 2 / 1e9;
  std::sort(numbers.begin(), numbers.end());
  outcome.latencies_ns = std::move(numbers);
}

/// One sample of a program that runs and is awake.
Outcome take(Program& program, const Sample& sample, Program::Clock::time_point deadline) {
  program.tell(fmt::format("sample {} {} {} {} {}", word_of(sample.question), sample.size, sample.messages,
                           warm_up_messages(sample), sample.touched ? 1 : 0));
  program.hear("ready", deadline);
  Outcome outcome;
  const std::uint64_t switches = context_switches_of(program.processes());
  const double cpu = cpu_seconds_of(program.processes());
  program.tell("go");
  const std::string result = program.hear("done", deadline);
  outcome.cpu_seconds = cpu_seconds_of(program.processes()) - cpu;
  outcome.context_switches = context_switches_of(program.processes()) - switches;
  if (sample.senders > 1) outcome.memory_bytes = memory_of(program.processes());
  read_result(result, sample, outcome);
  return outcome;
}

}  // namespace

bool ForeignSystem::can(const Sample& sample) const {
  const auto& questions = description_.questions;
  return std::find(questions.begin(), questions.end(), sample.question) != questions.end() &&
         sample.senders <= description_.most_senders && sample.size >= description_.least_size;
}

Program& ForeignSystem::program_for(const Sample& sample, Program::Clock::time_point deadline) {
  const std::string cores = sample.senders == 1 ? fmt::format("{}", fmt::join(sample.cores, ",")) : "";
  const std::string shape = fmt::format("{} {}", sample.senders, cores);
  if (!program_ || shape != shape_) {
    program_.reset();  // Before the next one starts: one of a kind at a time.
    program_ = std::make_unique<Program>(
        std::vector{description_.program.string(), std::to_string(sample.senders), cores}, deadline);
    shape_ = shape;
    version_ = program_->version();
  }
  return *program_;
}

Outcome ForeignSystem::run(const Sample& sample) {
  const auto timeout =
      std::chrono::duration_cast<Program::Clock::duration>(std::chrono::duration<double>(sample.timeout_seconds));
  const auto deadline = Program::Clock::now() + timeout;
  try {
    Program& program = program_for(sample, deadline);
    program.resume();
    Outcome outcome = take(program, sample, deadline);
    program.pause();
    return outcome;
  } catch (...) {
    program_.reset();  // Its state is unknown.
    throw;
  }
}

}  // namespace wherry::bench
