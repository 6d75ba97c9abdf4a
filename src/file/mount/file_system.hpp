// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <wherry/result.hpp>

#include "file/mount/delegations.hpp"
#include "file/mount/hosts.hpp"
#include "file/mount/lock_service.hpp"
#include "file/mount/nodes.hpp"
#include "file/mount/open_file.hpp"
#include "file/mount/own_changes.hpp"
#include "file/mount/passthrough.hpp"

namespace wherry::file::mount {

/// A name's file, to which the kernel refers from now on.
struct Entry {
  NodeId node = 0;
  struct stat attributes{};
  Nodes::Clock::duration kept_for{};  ///< the kernel may use both
};

/// What the kernel keeps of a file.
enum class Kept : std::uint8_t { attributes, pages };  ///< with its pages it drops the attributes, too

/// A name of a directory.
struct ListedEntry {
  Host::Entry entry{};
  std::optional<Entry> known{};  ///< if its attributes are known
};

/// What setattr changes.
struct Changes {
  std::optional<std::uint32_t> mode{};
  std::optional<std::uint32_t> user{};
  std::optional<std::uint32_t> group{};
  std::optional<std::uint64_t> size{};
  std::optional<layout::FileTimes> times{};
};

/// A place in an open file.
struct Position {
  NodeId node;
  OpenFile& file;
  std::uint64_t offset;
};

/// A host's files as the kernel asks for them: by node, not by name. Each call asks the server once or twice; nothing
/// is kept but the names. Functions return 0 or an errno value.
///
/// A file that is open is asked by its handle, whatever has its name by now; others by name, and ESTALE says that the
/// name belongs to another file, or to none. Changes by name look first: a file that another client gives the name to
/// between the two requests is changed instead.
///
/// Threads: any. Blocks as Host does.
class FileSystem {
 public:
  /// Connects. Throws Error.
  FileSystem(const HostOptions& options, std::size_t connections);

  [[nodiscard]] bool read_only() const { return hosts_.read_only(); }

  /// Where this is mounted on, before it is: where that lies below the directory that is served, a lookup is ELOOP. The
  /// server would come upon the mount, and wait for itself.
  void hide(const std::string& mount_point);
  /// How the kernel is told to drop what it keeps of a file. Before any other call.
  void set_drop(std::function<void(NodeId, Kept)> drop) { drop_ = std::move(drop); }
  /// The kernel may ask for pages to be written first, so no thread that serves the mount is to drop those.
  void drop(NodeId node, Kept what) const { drop_(node, what); }

  int look_up(NodeId parent, std::string_view name, Entry& entry);
  void forget(NodeId node, std::uint64_t count) { nodes_.forget(node, count); }
  int attributes(NodeId node, struct stat& attributes);
  /// @param kept_for  how long the kernel may use them
  int attributes(NodeId node, struct stat& attributes, Nodes::Clock::duration& kept_for);
  /// @param by  the open file that the program named, or null
  int change(NodeId node, const Changes& changes, const OpenFile* by, struct stat& attributes);
  int read_link(NodeId node, std::string& target);
  int file_system(NodeId node, struct statvfs& status);
  /// Extended attributes, as of Host.
  int get_xattr(NodeId node, std::string_view attribute, std::vector<std::byte>& value);
  int list_xattrs(NodeId node, std::vector<std::byte>& names);
  int set_xattr(NodeId node, std::string_view attribute, std::span<const std::byte> value, std::uint32_t flags);
  int remove_xattr(NodeId node, std::string_view attribute);

  /// A file, a FIFO or a socket, by the type in `mode`; EPERM for others.
  int make_file(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry);
  int make_directory(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry);
  int symlink(NodeId parent, std::string_view name, std::string_view target, Entry& entry);
  int link(NodeId node, NodeId parent, std::string_view name, Entry& entry);
  int remove(NodeId parent, std::string_view name, bool directory);
  /// `flags` as renameat2's.
  int rename(NodeId parent, std::string_view name, NodeId new_parent, std::string_view new_name, unsigned flags);

  /// `flags` as open's. The file is valid until `close`.
  int create(NodeId parent, std::string_view name, std::uint32_t mode, int flags, Entry& entry, OpenFile*& file);
  int open(NodeId node, int flags, OpenFile*& file);
  void close(NodeId node, const OpenFile* file);
  [[nodiscard]] Result read(OpenFile& file, std::uint64_t offset, std::span<std::byte> into);
  /// @param append  at the end of the file, wherever that is
  [[nodiscard]] Result write(NodeId node, OpenFile& file, std::uint64_t offset, std::span<const std::byte> from,
                             bool append);
  /// Copies at the server. Fewer bytes: the end of the first file, an interrupt, or an error that the next call meets.
  /// EOPNOTSUPP: to be copied by reads and writes.
  /// @param is_interrupted  asked between pieces
  [[nodiscard]] Result copy(const Position& from, const Position& to, std::uint64_t length,
                            const std::function<bool()>& is_interrupted);
  /// Removes the set-user-ID and set-group-ID bits, as the kernel does for a change that does not come from root.
  /// @param is_in_group  whether the program is in a group
  int drop_set_id(NodeId node, const std::function<bool(gid_t)>& is_in_group);
  /// What close(2) reports: whether the host was started again and has lost data.
  int flush(OpenFile& file);
  int sync(const Hosts::File& file, bool data_only);
  /// `mode` as fallocate's.
  int allocate(OpenFile& file, int mode, std::uint64_t offset, std::uint64_t length);
  int seek(OpenFile& file, std::uint64_t offset, bool data, std::uint64_t& found);

  [[nodiscard]] LockService& locks() { return locks_; }
  [[nodiscard]] Delegations& delegations() { return delegations_; }
  [[nodiscard]] Passthrough& passthrough() { return passthrough_; }
  [[nodiscard]] bool passes_through() const { return passthrough_.is_on() && hosts_.lends(); }

  /// The directory is valid until `close_directory`.
  int open_directory(NodeId node, OpenDirectory*& directory);
  void close_directory(const OpenDirectory* directory);
  /// Some entries behind `cookie`; none at the end. Only what the server is asked for in this call is told, so that no
  /// change that a program of the mount has made before is undone in the kernel's view; during one, nothing is kept.
  /// @param node  the directory's
  /// @param room  as of Host::list_with_status
  int list(NodeId node, const OpenDirectory& directory, std::uint64_t cookie, std::size_t room,
           std::vector<ListedEntry>& listed);
  [[nodiscard]] std::uint64_t inode_in(const OpenDirectory& directory, std::uint64_t inode) const;

 private:
  using Names = std::shared_lock<std::shared_mutex>;

  /// Held from a path's making to the end of the call that takes it: no rename of this mount is in between.
  Names keep_names();
  [[nodiscard]] bool is_hidden(NodeId parent, std::string_view name) const;
  /// Whether the mount point is in this directory.
  [[nodiscard]] bool has_hidden(NodeId directory) const;
  int make_node_kept(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry);
  int look_up_kept(NodeId parent, std::string_view name, Entry& entry);
  int status(NodeId node, layout::FileStatus& status);
  int status(NodeId node, layout::FileStatus& status, std::chrono::milliseconds& delegated_for);
  int change_size(NodeId node, std::uint64_t size, const OpenFile* by);
  int change_owner(NodeId node, const Changes& changes);
  int change_mode(NodeId node, std::uint32_t mode);
  int change_times(NodeId node, const layout::FileTimes& times);
  int open_at(NodeId node, std::uint32_t flags, std::unique_ptr<Hosts::File>& file, layout::FileStatus& status,
              const Hosts::File* beside = nullptr);
  [[nodiscard]] Entry refer(NodeId parent, std::string_view name, const layout::FileStatus& status);
  void add_open(NodeId node, const std::shared_ptr<OpenFile>& file);
  /// The name and status of a file that still has its name; ESTALE otherwise.
  int find(NodeId node, std::string& path, layout::FileStatus& status);
  /// What says that a name of the node's is gone counts as ESTALE: the kernel looks for it anew.
  static int stale_if_gone(int error);
  /// Asks an open file of the node by its handle; ESTALE if there is none.
  template <class Call>
  int by_handle(NodeId node, Call call);
  /// Makes a change by name.
  template <class Call>
  int by_name(NodeId node, Call call);
  /// By the handle of an open file, or by name.
  template <class Call>
  int by_either(NodeId node, Call call);

  std::mutex rename_turn_;  ///< held by a rename that waits: no later call is before it
  std::shared_mutex names_;
  Hosts hosts_;
  layout::FileStatus root_;
  struct Hidden {
    std::uint64_t device;
    std::uint64_t inode;
    std::string name;
  };
  std::optional<Hidden> hidden_;  ///< the directory of the mount point, and its name there
  Nodes nodes_;
  OwnChanges own_changes_;
  std::mutex opening_;  ///< of files that are added to those that are open
  std::function<void(NodeId, Kept)> drop_ = [](NodeId, Kept) {};
  LockService locks_;
  Delegations delegations_;
  Passthrough passthrough_;
  std::mutex directories_mutex_;
  /// The kernel closes none of those that are open when the mount ends.
  std::unordered_map<const OpenDirectory*, std::unique_ptr<OpenDirectory>> directories_;
};

}  // namespace wherry::file::mount
