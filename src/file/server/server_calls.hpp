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

/// A request as it was copied out of the stream. The header was checked by is_valid.
struct Request {
  layout::FileRequest header{};
  std::string name;
  std::string second;
};

/// What there is to answer beside the head.
struct Outcome {
  int error = 0;
  std::uint64_t value = 0;
  std::uint64_t position = 0;
  std::vector<std::byte> payload{};

  /// A lease on a file that is to be opened is in the way, or a write by a ticket that is to end: nothing has happened.
  [[nodiscard]] static Outcome of_lease() { return {.error = EAGAIN, .position = layout::kFileLeased}; }
  [[nodiscard]] bool is_leased() const { return error == EAGAIN && position == layout::kFileLeased; }
};

/// Whether what follows the header can be understood: a known call, names and lengths within the limits, nothing in the
/// fields that are to be 0.
[[nodiscard]] bool is_valid(const layout::FileRequest& header);

/// What is served beside the files.
struct Terms {
  bool read_only = false;  ///< nothing that changes something
  bool lends = true;       ///< descriptors too
  bool delegates = true;   ///< files too
  /// A client counts from when it asks, and its kernel from when it hears: so much later all delegations have ended.
  std::chrono::milliseconds delegation_margin{150};
  /// A client that writes nothing for so long after files were recalled that it may write to is cut off.
  std::chrono::milliseconds recall_timeout{5000};
};

/// A copy between two files that is to be done.
struct CopyPlan {
  Backing* from;
  std::uint64_t offset;
  Backing* to;
  std::uint64_t to_offset;
  std::uint64_t length;
};

/// All calls that move no file's data, of one client.
class Calls {
 public:
  /// @param tickets  null: none are made
  Calls(const Tree& tree, Handles& handles, const Terms& terms, Delegations& delegations, Tickets* tickets)
      : tree_(tree), handles_(handles), terms_(terms), delegations_(delegations), tickets_(tickets) {}

  /// Does what a request asks for.
  [[nodiscard]] Outcome perform(const Request& request);
  /// Why this request is not served here, or 0: EROFS; and of a file that was opened by a ticket EACCES, ESTALE.
  [[nodiscard]] int refused(const Request& request) const;
  /// Of FileCall::copy: 0, or an errno value. Valid until the next call that closes a file.
  [[nodiscard]] int plan_copy(const Request& request, CopyPlan& plan);
  /// FileCall::append, once its data has come: one write of the file, so that what others append at the same time comes
  /// before or behind it.
  [[nodiscard]] Outcome append(const Request& request, std::span<const std::byte> data);
  /// Whether the file of a write has these bytes where it writes.
  [[nodiscard]] bool has(const Request& request, std::span<const std::byte> data);
  /// FileCall::set_xattr, once its value has come.
  [[nodiscard]] Outcome set_xattr(const Request& request, std::span<const std::byte> value);

 private:
  struct Target {
    UniqueFd own;         ///< of a name
    int descriptor = -1;  ///< what to ask
    int error = 0;
  };
  struct XattrTarget {
    Target target;
    std::string path;  ///< that leads to its descriptor
    int error = 0;
  };
  Target target_of(const Request& request, bool follow);
  /// @param one  the request names one attribute
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
  Outcome heed_recalls(const Request& request);
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
};

}  // namespace wherry::file
