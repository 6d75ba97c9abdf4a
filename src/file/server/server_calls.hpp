// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "file/server/delegations.hpp"
#include "file/server/server_handles.hpp"
#include "file/server/tree.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// A request copied out of the stream. `header` has passed is_valid.
struct Request {
  layout::FileRequest header{};
  std::string name;
  std::string second;
};

/// The content of an answer, without its header.
struct Outcome {
  int error = 0;
  std::uint64_t value = 0;
  std::uint64_t position = 0;
  std::vector<std::byte> payload{};

  /// The request met a lease on a file that it opens, or a write by a ticket that it has to end. Nothing has changed.
  [[nodiscard]] static Outcome of_lease() { return {.error = EAGAIN, .position = layout::kFileLeased}; }
  [[nodiscard]] bool is_leased() const { return error == EAGAIN && position == layout::kFileLeased; }
};

/// Whether a header is well-formed: a known call, names and lengths within the limits, reserved fields 0.
[[nodiscard]] bool is_valid(const layout::FileRequest& header);

/// What a server allows its clients.
struct Terms {
  bool read_only = false;  ///< refuses every change
  bool lends = true;       ///< lends descriptors
  bool delegates = true;   ///< grants delegations
  /// How much longer a delegation lasts here than is reported to the client. The client counts from its request, but
  /// its kernel from the answer.
  std::chrono::milliseconds delegation_margin{150};
  /// After a recall of a file delegated for writing, a client that writes nothing for this time is cut off.
  std::chrono::milliseconds recall_timeout{5000};
};

/// The parameters of a copy between two files.
struct CopyPlan {
  Backing* from;
  std::uint64_t offset;
  Backing* to;
  std::uint64_t to_offset;
  std::uint64_t length;
};

/// Performs all calls of one client that do not move file data.
class Calls {
 public:
  /// @param tickets  null: no tickets are made
  /// @param graph  null: owners of locks that wait for each other are not detected
  Calls(const Tree& tree, Handles& handles, const Terms& terms, Delegations& delegations, Tickets* tickets,
        LockGraph* graph)
      : tree_(tree), handles_(handles), terms_(terms), delegations_(delegations), tickets_(tickets), graph_(graph) {}
  /// @param client  from the client's hello
  void set_client(std::uint64_t client) { client_ = client; }

  /// Performs a request.
  [[nodiscard]] Outcome perform(const Request& request);
  /// Whether a request is refused: 0 or EROFS; for a file opened by a ticket also EACCES or ESTALE.
  [[nodiscard]] int refused(const Request& request) const;
  /// Prepares FileCall::copy. Returns 0 or an errno value. `plan` is valid until the next call that closes a file.
  [[nodiscard]] int plan_copy(const Request& request, CopyPlan& plan);
  /// FileCall::append, once its data has arrived: one write, so that appends by others come before or after it.
  [[nodiscard]] Outcome append(const Request& request, std::span<const std::byte> data);
  /// Whether the file of a write already has these bytes at the write's offset.
  [[nodiscard]] bool has(const Request& request, std::span<const std::byte> data);
  /// FileCall::set_xattr, once its value has arrived.
  [[nodiscard]] Outcome set_xattr(const Request& request, std::span<const std::byte> value);

 private:
  struct Target {
    UniqueFd own;         ///< opened for a name
    int descriptor = -1;  ///< the descriptor to use
    int error = 0;
  };
  struct XattrTarget {
    Target target;
    std::string path;  ///< a path that leads to the descriptor
    int error = 0;
  };
  Target target_of(const Request& request, bool follow);
  /// @param one  whether the request names an attribute
  XattrTarget xattr_target_of(const Request& request, bool one);
  Outcome open(const Request& request);
  Outcome status(const Request& request);
  Outcome set_size(const Request& request);
  Outcome set_mode(const Request& request);
  Outcome set_times(const Request& request);
  Outcome set_owner(const Request& request);
  Outcome file_system(const Request& request);
  Outcome flush(const Request& request);
  Outcome allocate(const Request& request);
  Outcome seek(const Request& request);
  Outcome list(const Request& request);
  Outcome get_xattr(const Request& request);
  Outcome list_xattrs(const Request& request);
  Outcome remove_xattr(const Request& request);
  Outcome delegate(const Request& request);
  Outcome give_back(const Request& request);
  Outcome delegate_write(const Request& request);
  Outcome return_write(const Request& request);
  Outcome acknowledge_recalls(const Request& request);
  Outcome open_locks(const Request& request);
  Outcome set_lock(const Request& request);
  Outcome get_lock(const Request& request);
  Outcome make_ticket(const Request& request);
  Outcome open_ticket(const Request& request);
  Outcome end_tickets(const Request& request);
  [[nodiscard]] int refused_by_ticket(const Request& request) const;
  Outcome rename(const Request& request);
  [[nodiscard]] int settle(const Request& request, int error) const;

  const Tree& tree_;
  Handles& handles_;
  const Terms& terms_;
  Delegations& delegations_;
  Tickets* tickets_;
  LockGraph* graph_;
  std::uint64_t client_ = 0;
};

}  // namespace wherry::file
