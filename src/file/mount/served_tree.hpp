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

/// A name's file, to which the kernel refers from now on.
struct Entry {
  NodeId node = 0;
  struct stat attributes{};
  Nodes::Clock::duration name_kept_for{};  ///< the kernel may use it without asking
  Nodes::Clock::duration attributes_kept_for{};
};

/// What the kernel keeps of a file.
enum class Kept : std::uint8_t { attributes, pages };  ///< with its pages it drops the attributes, too

/// The files of a server as the kernel numbers them: how a node's file is found there, and what the kernel may keep.
///
/// A file that is open is asked by its handle, whatever has its name by now; others by name, and ESTALE says that the
/// name belongs to another file, or to none. Changes by name look first: a file that another client gives the name to
/// between the two requests is changed instead.
///
/// Functions that return int return 0 or an errno value. Threads: any. Blocks as Host does.
class ServedTree {
 public:
  using KeptNames = std::shared_lock<std::shared_mutex>;
  /// Of the kernel.
  using Drop = std::function<void(NodeId, Kept)>;

  /// Connects. Throws Error.
  /// In place of an earlier daemon this connects at the first call.
  /// @param writes  memory for writes that are kept here, of WriteBuffer::make
  ServedTree(const HostOptions& options, std::size_t connections, UniqueFd writes, const Keeping& keeping);

  [[nodiscard]] Hosts& hosts() { return hosts_; }
  [[nodiscard]] const Hosts& hosts() const { return hosts_; }
  [[nodiscard]] Nodes& nodes() { return nodes_; }
  [[nodiscard]] OwnChanges& own_changes() { return own_changes_; }
  /// Null: nothing is kept.
  [[nodiscard]] KeptState* kept() { return keeping_.state; }
  [[nodiscard]] KeptDescriptors* kept_descriptors() { return keeping_.descriptors; }
  [[nodiscard]] Attempts& attempts() { return attempts_; }
  /// For a file or directory that is opened. None is used twice, also by a later daemon.
  std::uint64_t next_number() { return last_number_.fetch_add(1, std::memory_order_relaxed) + 1; }

  /// Of a repeated request that failed since there is a file: whether the first attempt has made it. Returns 0, the
  /// error, or EIO where that cannot be told.
  /// @param first  of Attempts::begin: when the first attempt began
  int made_before(std::optional<std::uint64_t> first, int error, const std::string& path);
  [[nodiscard]] bool is_own_kernel();
  /// A file that an earlier daemon had open, whatever its name is.
  /// @param lost  its locks were: it answers ESTALE
  /// @param run  of the host, as the earlier daemon has noted it
  std::unique_ptr<Hosts::File> resume(NodeId node, std::uint64_t number, std::uint32_t flags, bool lost = false,
                                      const std::optional<HostRun>& run = {});
  /// Keeps for the next daemon what restarts of the host do to an open file.
  void keep_runs(const Hosts::File& file, std::uint64_t number);
  [[nodiscard]] WriteBehind& write_behind() { return write_behind_; }

  /// Held from a path's making to the end of the call that takes it: no rename of this mount is in between.
  [[nodiscard]] KeptNames keep_names();
  /// Held by a rename, and by no other call.
  [[nodiscard]] std::unique_lock<std::shared_mutex> change_names();

  /// Where this is mounted on, before it is: where that lies below the directory that is served, a lookup is ELOOP. The
  /// server would come upon the mount, and wait for itself.
  void hide(const std::string& mount_point);
  [[nodiscard]] bool is_hidden(NodeId parent, std::string_view name) const;
  /// Whether the mount point is in this directory.
  [[nodiscard]] bool has_hidden(NodeId directory) const;

  /// How the kernel is told to drop what it keeps of a file. Before any other call.
  void set_drop(Drop drop) { drop_ = std::move(drop); }
  /// The kernel may ask for pages to be written first, so no thread that serves the mount is to drop those.
  void drop(NodeId node, Kept what) const { drop_(node, what); }

  /// Gives the node of a name, of which the kernel keeps nothing.
  [[nodiscard]] Entry refer(NodeId parent, std::string_view name, const layout::FileStatus& status);
  /// How long the kernel may keep attributes that it has asked for.
  [[nodiscard]] Nodes::Clock::duration kept_for(NodeId node, std::uint32_t mode) const;
  [[nodiscard]] struct stat attributes_of(const layout::FileStatus& status) const;
  [[nodiscard]] std::uint64_t inode_of(std::uint64_t inode, std::uint64_t device) const;

  /// The status of a name, in which all is counted that programs of this mount have written before.
  int status_of(const std::string& path, layout::FileStatus& status);
  /// The same of files that the server has told of, if `kept` may lack something: WriteBehind::kept, from before that.
  void count_kept(const std::vector<NodeId>& kept, layout::FileStatus& status);
  /// The name and status of a file that still has its name; ESTALE otherwise. For a call that keeps the names.
  int find(NodeId node, std::string& path, layout::FileStatus& status);
  /// Opens the node for a program: by its name if that is still the same file. One that has no name any more is opened
  /// as what is open of it already.
  int open(NodeId node, std::uint32_t flags, std::unique_ptr<Hosts::File>& file, layout::FileStatus& status);
  /// Opens what a program has open, whatever its name is.
  /// @param beside  as of Hosts::open
  int open_again(NodeId node, std::uint32_t flags, std::unique_ptr<Hosts::File>& file, layout::FileStatus& status,
                 const Hosts::File* beside = nullptr);
  /// What is open of a file that is about to lose a name is kept for the next daemon, which may not find it any more.
  void keep_open(NodeId parent, std::string_view name);
  /// What says that a name of the node's is gone counts as ESTALE: the kernel looks for it anew.
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
  /// By the handle of an open file, or by name.
  template <class OfHandle, class OfName>
  int by_handle_or_name(NodeId node, OfHandle of_handle, OfName of_name) {
    const int by = by_handle(node, of_handle);
    return by != ESTALE ? by : by_name(node, of_name);
  }
  /// The same by one function: call(const Hosts::Use&, const HostXattrs::Target&).
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

  std::mutex rename_turn_;  ///< held by a rename that waits: no later call is before it
  std::shared_mutex names_;
  Hosts hosts_;
  Keeping keeping_;
  layout::FileStatus root_;
  BootId first_run_{};            ///< of the host's kernel, when the mount was made
  std::optional<Hidden> hidden_;  ///< the directory of the mount point, and its name there
  Nodes nodes_;
  WriteBehind write_behind_;
  OwnChanges own_changes_;
  Attempts attempts_;
  std::atomic<std::uint64_t> last_number_{0};
  Drop drop_ = [](NodeId, Kept) {};
};

}  // namespace wherry::file::mount
