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

#include "file/mount/identity.hpp"
#include "file/mount/kept_state.hpp"

namespace wherry::file::mount {

class OpenFile;

/// How long the kernel may use names and attributes that a list has told, without asking again: programs that list a
/// directory look at its files soon afterwards.
inline constexpr std::chrono::milliseconds kKept{1000};

/// The same for a directory that was looked up or asked for, which is on the way to all that is below it.
inline constexpr std::chrono::milliseconds kDirectoriesKept{100};

/// The same for the attributes of another file that was looked up. The kernel counts in its ticks, of up to 10 ms.
inline constexpr std::chrono::milliseconds kOfOneCall{1};

/// The files that the kernel knows, by number. A file has one node whatever names it has; a node knows the names under
/// which the kernel has looked it up, from which its path is made. The server's calls take paths, so a rename of a
/// directory moves what is below it without a word.
///
/// A node lives as long as the kernel refers to it, a name of another node lies below it, or a file of it is open.
///
/// Names may be out of date where another client has renamed or removed a file. The last name that was looked up is
/// used, and its answer is compared with the node's identity by the callers.
///
/// Threads: any. Nothing blocks.
class Nodes {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /// @param kept  what the next daemon is left; null: nothing
  explicit Nodes(const Identity& root, KeptState* kept = nullptr);
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;
  ~Nodes();

  /// Takes over what an earlier daemon has left. Before any other call.
  void restore(const KeptSnapshot& left);

  /// The node of the file that has this name now, with one reference of the kernel's more.
  NodeId refer(NodeId parent, std::string_view name, const Identity& identity);
  /// The kernel has dropped `count` references.
  void forget(NodeId node, std::uint64_t count);

  /// The name is no longer there.
  void remove_name(NodeId parent, std::string_view name);
  /// The same of the name by which the node's path is made, if that is this one.
  void remove_path(NodeId node, const std::string& path);
  void rename(NodeId parent, std::string_view name, NodeId new_parent, std::string_view new_name, bool exchange);

  /// Relative to the directory that is served, "." for itself. Empty if the file has no name any more that is known.
  [[nodiscard]] std::optional<std::string> path(NodeId node) const;
  /// Of a name in a directory.
  [[nodiscard]] std::optional<std::string> path(NodeId parent, std::string_view name) const;
  [[nodiscard]] std::optional<Identity> identity(NodeId node) const;
  /// What has the name, as far as is known.
  [[nodiscard]] std::optional<NodeId> find(NodeId parent, std::string_view name) const;
  /// Of what has the name.
  [[nodiscard]] std::optional<Identity> identity(NodeId parent, std::string_view name) const;

  /// The directory is listed: it and those above it, by which its files are reached, are kept from now on for kKept.
  void note_list(NodeId node, Time now = Clock::now());
  /// What is left of that; 0 if nothing.
  [[nodiscard]] Clock::duration kept_for(NodeId node, Time now = Clock::now()) const;

  void add_open(NodeId node, std::shared_ptr<OpenFile> file);
  /// Returns it.
  std::shared_ptr<OpenFile> remove_open(NodeId node, const OpenFile* file);
  /// Files that are open, in the order in which they were opened.
  [[nodiscard]] std::vector<std::shared_ptr<OpenFile>> open_files(NodeId node) const;
  [[nodiscard]] bool is_open(NodeId node) const;
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
    std::uint64_t references = 0;      ///< the kernel's
    std::size_t children = 0;          ///< names below this directory
    std::vector<const Name*> names{};  ///< keys of `names_`; the last is the newest
    std::vector<std::shared_ptr<OpenFile>> open{};
    std::optional<Time> listed{};
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
