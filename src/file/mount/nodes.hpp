// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "file/mount/cached_pages.hpp"
#include "file/mount/identity.hpp"
#include "file/mount/kept_state.hpp"

namespace wherry::file::mount {

class OpenFile;

/// How long the kernel may cache names and attributes from a list. Programs that list a directory usually look at its
/// files soon afterwards.
inline constexpr std::chrono::milliseconds kKept{1000};

/// The same for a directory that was looked up or asked for: it is on the path to everything below it.
inline constexpr std::chrono::milliseconds kDirectoriesKept{100};

/// The same for the attributes of another file that was looked up. The kernel counts in its ticks, of up to 10 ms.
inline constexpr std::chrono::milliseconds kOfOneCall{1};

/// The files that the kernel knows, by number. A file has one node, whatever names it has. A node knows the names under
/// which the kernel has looked it up, and its path is made from them. The server's calls take paths, so renaming a
/// directory needs no update of the nodes below it.
///
/// A node lives while the kernel refers to it, a name of another node lies below it, or one of its files is open.
///
/// A name may be out of date if another client has renamed or removed the file. The path uses the name that was looked
/// up last. Callers compare the server's answer with the node's identity.
///
/// Thread-safe. Never blocks.
class Nodes {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /// @param kept  the log for the next daemon; null: none
  explicit Nodes(const Identity& root, KeptState* kept = nullptr);
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;
  ~Nodes();

  /// Takes over what an earlier daemon has left. Must be the first call.
  void restore(const KeptSnapshot& left);

  /// Returns the node of the file that has this name now, and adds a reference of the kernel.
  NodeId refer(NodeId parent, std::string_view name, const Identity& identity);
  /// Removes `count` references of the kernel.
  void forget(NodeId node, std::uint64_t count);

  /// Call when the name no longer exists.
  void remove_name(NodeId parent, std::string_view name);
  /// Removes the name from which the node's path is made, if the path is still `path`.
  void remove_path(NodeId node, const std::string& path);
  void rename(NodeId parent, std::string_view name, NodeId new_parent, std::string_view new_name, bool exchange);

  /// The path relative to the served directory, "." for that directory. Empty if no name of the file is known any more.
  [[nodiscard]] std::optional<std::string> path(NodeId node) const;
  /// The path of a name in a directory.
  [[nodiscard]] std::optional<std::string> path(NodeId parent, std::string_view name) const;
  [[nodiscard]] std::optional<Identity> identity(NodeId node) const;
  /// The node that has the name, as far as is known.
  [[nodiscard]] std::optional<NodeId> find(NodeId parent, std::string_view name) const;
  /// The identity of that node.
  [[nodiscard]] std::optional<Identity> identity(NodeId parent, std::string_view name) const;

  /// Call when the directory is listed: the kernel may cache it, and the directories above it, for kKept from now on.
  void note_list(NodeId node, Time now = Clock::now());
  /// The remaining time of that; 0 if none.
  [[nodiscard]] Clock::duration kept_for(NodeId node, Time now = Clock::now()) const;

  void add_open(NodeId node, std::shared_ptr<OpenFile> file);
  /// Returns the removed file.
  std::shared_ptr<OpenFile> remove_open(NodeId node, const OpenFile* file);
  /// The open files of the node, in the order in which they were opened.
  [[nodiscard]] std::vector<std::shared_ptr<OpenFile>> open_files(NodeId node) const;
  [[nodiscard]] bool is_open(NodeId node) const;
  /// What is known about the kernel's pages of the file. A new object if there is no such node.
  [[nodiscard]] std::shared_ptr<CachedPages> pages(NodeId node);
  [[nodiscard]] std::vector<NodeId> open_nodes() const;

  [[nodiscard]] std::size_t count() const;

 private:
  struct Name {
    NodeId parent;
    std::string text;
    bool operator==(const Name&) const = default;
  };
  struct HashName {
    std::size_t operator()(const Name& name) const;
  };
  struct HashIdentity {
    std::size_t operator()(const Identity& identity) const;
  };
  struct Node {
    Identity identity{};
    std::uint64_t references = 0;      ///< of the kernel
    std::size_t children = 0;          ///< names below this directory
    std::vector<const Name*> names{};  ///< keys of `names_`; the newest is last
    std::vector<std::shared_ptr<OpenFile>> open{};
    std::optional<Time> listed{};
    std::shared_ptr<CachedPages> pages{};  ///< from the first open
  };

  using Batch = KeptState::Batch;

  void bind(Batch& batch, NodeId parent, std::string_view name, NodeId node);
  NodeId unbind(Batch& batch, NodeId parent, std::string_view name);
  void drop_name(Node& node, const Name* name);
  void collect(Batch& batch, NodeId node);
  [[nodiscard]] std::optional<std::string> path_of(NodeId node) const;

  KeptState* kept_;
  mutable std::mutex mutex_;
  std::unordered_map<NodeId, Node> nodes_;
  std::unordered_map<Name, NodeId, HashName> names_;
  std::unordered_map<Identity, NodeId, HashIdentity> identities_;
  NodeId last_ = kRootNode;
};

}  // namespace wherry::file::mount
