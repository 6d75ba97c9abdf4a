// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "file/mount/attempts.hpp"
#include "file/mount/hosts.hpp"
#include "file/mount/keeping.hpp"
#include "file/mount/nodes.hpp"
#include "file/mount/open_file.hpp"
#include "file/mount/own_changes.hpp"
#include "file/mount/write_behind.hpp"

namespace wherry::file::mount {

/// The file of a name, with a new reference by the kernel.
struct Entry {
  NodeId node = 0;
  struct stat attributes{};
  Nodes::Clock::duration name_kept_for{};  ///< how long the kernel may cache it
  Nodes::Clock::duration attributes_kept_for{};
};

/// What the kernel caches of a file.
enum class Kept : std::uint8_t { attributes, pages };  ///< dropping the pages drops the attributes, too

/// The files of a server by the kernel's node numbers: finds a node's file at the server, and decides what the kernel
/// may cache.
///
/// An open file is asked by its handle, whatever has its name now. Other files are asked by name; ESTALE: the name
/// belongs to another file, or to none. A change by name first checks the file. If another client gives the name to a
/// different file between the two requests, that file is changed.
///
/// Functions that return int return 0 or an errno value. Thread-safe. Blocks as Host does.
class ServedTree {
 public:
  using KeptNames = std::shared_lock<std::shared_mutex>;
  /// Makes the kernel drop what it caches of a file.
  using Drop = std::function<void(NodeId, Kept)>;

  /// Connects; in place of an earlier daemon, only at the first call. Throws Error.
  /// @param writes  memory for held-back writes, from WriteBuffer::make
  ServedTree(const HostOptions& options, std::size_t connections, UniqueFd writes, const Keeping& keeping);

  [[nodiscard]] Hosts& hosts() { return hosts_; }
  [[nodiscard]] const Hosts& hosts() const { return hosts_; }
  [[nodiscard]] Nodes& nodes() { return nodes_; }
  [[nodiscard]] OwnChanges& own_changes() { return own_changes_; }
  /// Null: nothing is kept.
  [[nodiscard]] KeptState* kept() { return keeping_.state; }
  [[nodiscard]] KeptDescriptors* kept_descriptors() { return keeping_.descriptors; }
  [[nodiscard]] Attempts& attempts() { return attempts_; }
  /// A number for a file or directory that is opened. No number is used twice, also not by a later daemon.
  std::uint64_t next_number() { return last_number_.fetch_add(1, std::memory_order_relaxed) + 1; }

  /// For a repeated request that failed because a file exists: whether the first attempt has made it. Returns 0, the
  /// error, or EIO if that is unknown.
  /// @param first  from Attempts::begin: when the first attempt began
  int made_before(std::optional<std::uint64_t> first, int error, const std::string& path);
  [[nodiscard]] bool is_own_kernel();
  /// Takes over a file that an earlier daemon had open, whatever its name is now.
  /// @param lost  its locks were lost: it returns ESTALE
  /// @param seen  the host's boot, as recorded by the earlier daemon
  std::unique_ptr<Hosts::File> resume(NodeId node, std::uint64_t number, std::uint32_t flags, bool lost = false,
                                      const std::optional<HostBoot>& seen = {});
  /// Records for the next daemon what reboots of the host do to an open file.
  void keep_boots(const Hosts::File& file, std::uint64_t number);
  [[nodiscard]] WriteBehind& write_behind() { return write_behind_; }

  /// Hold it from making a path to the end of the call that uses the path: no rename of this mount comes in between.
  [[nodiscard]] KeptNames keep_names();
  /// Held by a rename; it excludes all other holders.
  [[nodiscard]] std::unique_lock<std::shared_mutex> change_names();

  /// Call it before mounting, with the mount point. If that lies below the served directory, a lookup of it returns
  /// ELOOP. Otherwise the server would enter the mount, and wait for itself.
  void hide(const std::string& mount_point);
  [[nodiscard]] bool is_hidden(NodeId parent, std::string_view name) const;
  /// Whether the mount point is in this directory.
  [[nodiscard]] bool has_hidden(NodeId directory) const;

  /// Sets how to make the kernel drop what it caches. Must be the first call.
  void set_drop(Drop drop) { drop_ = std::move(drop); }
  /// Makes the kernel drop what it caches, and programs stop reading the file in place. Do not drop pages from a thread
  /// that serves the mount: the kernel may first ask for pages to be written.
  void drop(NodeId node, Kept what) const;

  /// Returns the node of a name. The kernel must not cache the entry.
  [[nodiscard]] Entry refer(NodeId parent, std::string_view name, const layout::FileStatus& status);
  /// How long the kernel may cache attributes that it has asked for.
  [[nodiscard]] Nodes::Clock::duration kept_for(NodeId node, std::uint32_t mode) const;
  [[nodiscard]] struct stat attributes_of(const layout::FileStatus& status) const;
  [[nodiscard]] std::uint64_t inode_of(std::uint64_t inode, std::uint64_t device) const;

  /// The status of a name, including all earlier writes by programs of this mount.
  int status_of(const std::string& path, layout::FileStatus& status);
  /// Updates a status that the server has returned, if it may lack held-back writes. `kept`: WriteBehind::kept(), from
  /// before the server was asked.
  void count_kept(const std::vector<NodeId>& kept, layout::FileStatus& status);
  /// The path and status of a file that still has its name; otherwise ESTALE. Requires keep_names().
  int find(NodeId node, std::string& path, layout::FileStatus& status);
  /// Opens the node for a program: by its name, if that still leads to the same file. A file without a name is opened
  /// again through an open handle of it.
  int open(NodeId node, std::uint32_t flags, std::unique_ptr<Hosts::File>& file, layout::FileStatus& status);
  /// Opens again what a program has open, whatever its name is now.
  /// @param beside  as in Hosts::open
  int open_again(NodeId node, std::uint32_t flags, std::unique_ptr<Hosts::File>& file, layout::FileStatus& status,
                 const Hosts::File* beside = nullptr);
  /// Keeps the open files of a name that is about to be removed for the next daemon, which may not find them by name.
  void keep_open(NodeId parent, std::string_view name);
  /// Turns errors that say that a node's name is gone into ESTALE: the kernel then looks the name up again.
  static int stale_if_gone(int error);

  /// Asks an open file of the node by its handle: call(OpenFile&). ESTALE if there is none.
  template <class Call>
  int by_handle(NodeId node, Call call) {
    for (const auto& open : nodes_.open_files(node)) {
      const int error = call(*open);
      if (error != ESTALE && error != EBADF) return error;
    }
    return ESTALE;
  }
  /// Makes a change by name: call(const std::string& path).
  template <class Call>
  int by_name(NodeId node, Call call) {
    const KeptNames kept = keep_names();
    std::string path;
    layout::FileStatus status{};
    if (const int error = find(node, path, status); error != 0) return error;
    return stale_if_gone(call(path));
  }
  /// By the handle of an open file if there is one, otherwise by name.
  template <class OfHandle, class OfName>
  int by_handle_or_name(NodeId node, OfHandle of_handle, OfName of_name) {
    const int by = by_handle(node, of_handle);
    return by != ESTALE ? by : by_name(node, of_name);
  }
  /// As above, with one function: call(const Hosts::Use&, const HostXattrs::Target&).
  template <class Call>
  int by_either(NodeId node, Call call) {
    return by_handle_or_name(
        node, [&](const OpenFile& open) { return call(open.file().use(), {.handle = open.file().handle()}); },
        [&](const std::string& path) { return call(hosts_.any(), {.handle = 0, .name = path}); });
  }

 private:
  int open_by_name(NodeId node, std::uint32_t flags, std::unique_ptr<Hosts::File>& file, layout::FileStatus& status,
                   const Hosts::File* beside);
  int open_open(NodeId node, std::uint32_t flags, std::unique_ptr<Hosts::File>& file, layout::FileStatus& status,
                const Hosts::File* beside);

  struct Hidden {
    std::uint64_t device;
    std::uint64_t inode;
    std::string name;
  };

  std::mutex rename_turn_;  ///< held by a waiting rename, so that later calls do not overtake it
  std::shared_mutex names_;
  Hosts hosts_;
  Keeping keeping_;
  layout::FileStatus root_;
  BootId first_boot_{};           ///< the host's boot when the mount was made
  std::optional<Hidden> hidden_;  ///< the directory of the mount point, and its name there
  Nodes nodes_;
  WriteBehind write_behind_;
  OwnChanges own_changes_;
  Attempts attempts_;
  std::atomic<std::uint64_t> last_number_{0};
  Drop drop_ = [](NodeId, Kept) {};
};

}  // namespace wherry::file::mount
