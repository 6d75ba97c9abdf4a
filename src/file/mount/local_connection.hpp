// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "file/client/host_connection.hpp"
#include "file/server/server_calls.hpp"

namespace wherry::file::mount {

/// Serves requests in the thread that sends them, with the server's code on the server's own directory. For a process
/// of the same kernel with the same rights. A request to the server's process costs two context switches, this one
/// none. It ends when the server's process ends, as a stream does.
///
/// Refuses to delegate files, which only the server can do.
class LocalConnection final : public HostConnection {
 public:
  /// Shared by all connections of a mount.
  struct Shared {
    HandleBudget budget = HandleBudget::of_process();
    file::Delegations delegations{budget, false, {}, {}};  ///< grants none
  };

  /// Returns a LocalConnection, which keeps the stream, so that the server still sees a connected client. Returns the
  /// stream itself if the server does not lend its directory, or has other rights than this process.
  static std::unique_ptr<HostConnection> instead_of(std::unique_ptr<StreamConnection> stream, Shared& shared);

  [[nodiscard]] const layout::FileHello& server() const override { return stream_->server(); }
  /// A pidfd of this process.
  [[nodiscard]] int lender() const override { return own_.get(); }
  [[nodiscard]] std::uint64_t adopt(int descriptor, bool appends) override;
  [[nodiscard]] bool may_have_done() const override { return false; }
  [[nodiscard]] bool send(layout::FileRequest request, std::string_view name, std::string_view second, Buffers data,
                          std::uint64_t data_bytes) override;
  [[nodiscard]] std::optional<layout::FileAnswer> receive(std::span<std::byte> payload) override;
  [[nodiscard]] std::optional<layout::FileAnswer> receive(std::vector<std::byte>& payload, std::size_t most) override;
  [[nodiscard]] std::optional<Read> receive_data(Buffers into, std::uint64_t length) override;

 private:
  LocalConnection(std::unique_ptr<StreamConnection> stream, Tree tree, UniqueFd own, Shared& shared);
  [[nodiscard]] bool has_server() const;
  [[nodiscard]] Outcome perform(Buffers data, std::uint64_t data_bytes);
  [[nodiscard]] Outcome write(Buffers data, std::uint64_t data_bytes);
  [[nodiscard]] Outcome copy();
  [[nodiscard]] layout::FileAnswer head() const;

  std::unique_ptr<StreamConnection> stream_;
  UniqueFd own_;  ///< a pidfd
  Terms terms_;
  Tree tree_;
  Handles handles_;
  Calls calls_;
  Request request_{};
  Outcome outcome_{};
};

}  // namespace wherry::file::mount
