// SPDX-License-Identifier: Apache-2.0
//
// The ports among which a name to bind leaves a choice, in the syntax of ZeroMQ programs: 0 and * are any free port, as
// for tcp. *[60000-60100] and [60000-60100] are the first free port of a range, and ![60000-60100] a random one, as in
// czmq for tcp. Without a limit, the range begins or ends with the first or last port that no convention assigns.
#pragma once

#include <optional>
#include <string>

namespace zmq {

class wherry_ports_t {
 public:
  /// `name` is the part after wherry://. Throws wherry::Error (EINVAL) if its range is invalid. Other names are checked
  /// by wherry::listen.
  explicit wherry_ports_t(const std::string& name);

  /// Returns the next name to try, for wherry::listen. Empty if there are no more.
  std::optional<std::string> next();

 private:
  void parse_range(const std::string& name, const std::string& range);

  std::string node_;
  std::optional<std::string> only_;  ///< if there is no range, the whole name
  unsigned first_ = 0;
  unsigned count_ = 1;
  unsigned start_ = 0;  ///< offset in the range to begin with
  unsigned tried_ = 0;
};

}  // namespace zmq
