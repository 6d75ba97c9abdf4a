// SPDX-License-Identifier: Apache-2.0
//
// The ports that a name to bind leaves to choose from. Written as programs of ZeroMQ's know it: 0 and * are any free
// port, as for tcp; *[60000-60100] and [60000-60100] are the first free one of a range and ![60000-60100] a random one,
// as czmq has it for tcp, with either limit left out for the first and the last port that no convention assigns.
#pragma once

#include <optional>
#include <string>

namespace zmq {

class wherry_ports_t {
 public:
  /// `name` is what follows wherry://. Throws wherry::Error (EINVAL) if it has a range that is none; other names are
  /// for Wherry to judge.
  explicit wherry_ports_t(const std::string& name);

  /// The next name to try, for wherry::listen; empty when there are no more.
  std::optional<std::string> next();

 private:
  void parse_range(const std::string& name, const std::string& range);

  std::string node_;
  std::optional<std::string> only_;  ///< if there is no range, the whole name
  unsigned first_ = 0;
  unsigned count_ = 1;
  unsigned start_ = 0;  ///< where in the range to begin
  unsigned tried_ = 0;
};

}  // namespace zmq
