// SPDX-License-Identifier: Apache-2.0
// For tests: a client that hears of recalls, as a mount does.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/client/host_connection.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {

/// The connection by which a client hears of recalls.
class RecallWatcher {
 public:
  using Files = std::vector<layout::FileIdentity>;
  struct Answer {
    int error = 0;
    std::uint64_t value = 0;
    Files files{};
  };

  /// Throws std::exception if there is no server.
  explicit RecallWatcher(const ServedDirectory& served) : connection_(served.address(), 0, {}, Timeout()) {
    number_ = ask(layout::FileCall::await_recalls, 0).value;
    if (number_ == 0) throw std::runtime_error("no number for recalls");
  }

  [[nodiscard]] std::uint64_t number() const { return number_; }
  Files await_recalls() { return ask(layout::FileCall::await_recalls, number_).files; }
  void give_back(const Files& files) { EXPECT_EQ(ask(layout::FileCall::give_back, number_, files).error, 0); }

  Answer ask(layout::FileCall call, std::uint64_t number, const Files& files = {}) {
    send(call, number, files);
    std::vector<std::byte> payload;
    const auto head = connection_.receive(payload, 65536);
    if (!head) return {.error = ECONNRESET};
    Answer answer{.error = static_cast<int>(head->error),
                  .value = head->value,
                  .files = Files(payload.size() / sizeof(layout::FileIdentity))};
    if (!payload.empty()) std::memcpy(answer.files.data(), payload.data(), payload.size());
    return answer;
  }
  void send(layout::FileCall call, std::uint64_t number, const Files& files = {}) {
    layout::FileRequest request{};
    request.call = static_cast<std::uint32_t>(call);
    request.offset = number;
    const auto bytes = std::as_bytes(std::span(files));
    if (!connection_.send(request, {}, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, Buffers({}), 0))
      throw std::runtime_error("the server has ended");
  }

 private:
  StreamConnection connection_;
  std::uint64_t number_ = 0;
};

inline bool has_leases(const std::filesystem::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return ::fcntl(file.get(), F_SETLEASE, F_RDLCK) == 0;
}

}  // namespace wherry::file
