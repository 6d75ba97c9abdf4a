// SPDX-License-Identifier: Apache-2.0
#include "file/mount/nodes.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace wherry::file::mount {
namespace {

std::size_t mix(std::size_t one, std::size_t other) { return one ^ (other + 0x9E3779B97F4A7C15U + (one << 6)); }

/// Puts a component before a path.
void put_before(std::string& path, const std::string& name) {
  if (!path.empty()) path.insert(0, 1, '/');
  path.insert(0, name);
}

}  // namespace

Identity identity_of(const layout::FileStatus& status) {
  const bool born = status.has_birth != 0;
  return {.device = status.device,
          .inode = status.inode,
          .born_seconds = born ? status.born.seconds : 0,
          .born_nanoseconds = born ? status.born.nanoseconds : 0,
          .type = status.mode & S_IFMT};
}

std::size_t Nodes::HashName::operator()(const Name& name) const {
  return mix(std::hash<std::string>{}(name.text), std::hash<NodeId>{}(name.parent));
}

std::size_t Nodes::HashIdentity::operator()(const Identity& identity) const {
  return mix(std::hash<std::uint64_t>{}(identity.inode), std::hash<std::uint64_t>{}(identity.device));
}

Nodes::Nodes(const Identity& root, KeptState* kept) : kept_(kept) {
  nodes_[kRootNode] = {.identity = root, .references = 1};
  identities_[root] = kRootNode;
}

Nodes::~Nodes() = default;

void Nodes::restore(const KeptSnapshot& left) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, known] : left.nodes) {
    Node& node = nodes_[number];
    node.identity = known.identity;
    node.references = known.references;
    identities_[known.identity] = number;
  }
  left.for_each_name([this](NodeId parent, const std::string& text, NodeId number) {
    if (!nodes_.contains(parent) || !nodes_.contains(number)) return;
    const auto [place, is_new] = names_.try_emplace(Name{parent, text}, number);
    if (is_new) ++nodes_[parent].children;
    nodes_[number].names.push_back(&place->first);
  });
  last_ = std::max(last_, left.number(layout::KeptWord::last_node));
}

NodeId Nodes::refer(NodeId parent, std::string_view name, const Identity& identity) {
  const std::lock_guard lock(mutex_);
  Batch batch(kept_);
  const auto [found, is_new] = identities_.try_emplace(identity, 0);
  if (is_new) {
    found->second = ++last_;
    nodes_[last_].identity = identity;
    batch.add_node(last_, identity);
  }
  const NodeId node = found->second;
  // Before bind(): the old owner of the name may be all that keeps a parent alive.
  batch.add(layout::KeptWord::references, node, ++nodes_[node].references);
  bind(batch, parent, name, node);
  return node;
}

/// A directory has one name. A file may have several; the one that was looked up last is the newest.
void Nodes::bind(Batch& batch, NodeId parent, std::string_view name, NodeId node) {
  if (node == kRootNode || !nodes_.contains(parent)) return;
  const auto [place, is_new] = names_.try_emplace(Name{parent, std::string(name)}, node);
  if (is_new) ++nodes_[parent].children;
  const Name* const key = &place->first;
  const NodeId before = std::exchange(place->second, node);
  if (!is_new && before != node) {
    drop_name(nodes_[before], key);
    collect(batch, before);
  }
  Node& owner = nodes_[node];
  if (!owner.names.empty() && owner.names.back() == key) return;
  drop_name(owner, key);
  if (S_ISDIR(owner.identity.type)) {
    for (const Name* const old : std::vector(owner.names)) {
      const NodeId old_parent = old->parent;
      const std::string text = old->text;  // a copy, since unbind() frees the original
      unbind(batch, old_parent, text);
      collect(batch, old_parent);
    }
  }
  nodes_[node].names.push_back(key);
  batch.add_name(layout::KeptWord::named, parent, name, node);
}

void Nodes::drop_name(Node& node, const Name* name) { std::erase(node.names, name); }

/// Returns the node that had the name; 0: none.
NodeId Nodes::unbind(Batch& batch, NodeId parent, std::string_view name) {
  const auto found = names_.find(Name{parent, std::string(name)});
  if (found == names_.end()) return 0;
  const NodeId node = found->second;
  drop_name(nodes_[node], &found->first);
  names_.erase(found);
  --nodes_[parent].children;
  batch.add_name(layout::KeptWord::unnamed, parent, name);
  return node;
}

/// Erases a node that nothing refers to, and then nodes that only it referred to.
void Nodes::collect(Batch& batch, NodeId node) {
  std::vector<NodeId> left{node};
  while (!left.empty()) {
    const auto found = nodes_.find(left.back());
    left.pop_back();
    if (found == nodes_.end() || found->first == kRootNode) continue;
    Node& gone = found->second;
    if (gone.references != 0 || gone.children != 0 || !gone.open.empty()) continue;
    for (const Name* const name : std::vector(gone.names)) {
      left.push_back(name->parent);
      const std::string text = name->text;  // a copy, as above
      unbind(batch, name->parent, text);
    }
    const auto known = identities_.find(gone.identity);
    if (known != identities_.end() && known->second == found->first) identities_.erase(known);
    batch.add(layout::KeptWord::forgotten, found->first);
    nodes_.erase(found);
  }
}

void Nodes::forget(NodeId node, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  Batch batch(kept_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  found->second.references -= std::min(found->second.references, count);
  batch.add(layout::KeptWord::references, node, found->second.references);
  collect(batch, node);
}

void Nodes::remove_name(NodeId parent, std::string_view name) {
  const std::lock_guard lock(mutex_);
  Batch batch(kept_);
  if (const NodeId node = unbind(batch, parent, name); node != 0) collect(batch, node);
  collect(batch, parent);
}

void Nodes::remove_path(NodeId node, const std::string& path) {
  const std::lock_guard lock(mutex_);
  Batch batch(kept_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.names.empty() || path_of(node) != path) return;
  const Name last = *found->second.names.back();
  unbind(batch, last.parent, last.text);
  collect(batch, node);
  collect(batch, last.parent);
}

void Nodes::rename(NodeId parent, std::string_view name, NodeId new_parent, std::string_view new_name, bool exchange) {
  const std::lock_guard lock(mutex_);
  Batch batch(kept_);
  const NodeId moved = unbind(batch, parent, name);
  const NodeId other = unbind(batch, new_parent, new_name);
  if (moved != 0) bind(batch, new_parent, new_name, moved);
  if (other != 0 && exchange) bind(batch, parent, name, other);
  if (moved != 0) collect(batch, moved);
  if (other != 0) collect(batch, other);
  collect(batch, parent);
  collect(batch, new_parent);
}

/// Limits the length: names of directories that others have moved may form a cycle.
std::optional<std::string> Nodes::path_of(NodeId node) const {
  std::string path;
  while (node != kRootNode) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end() || found->second.names.empty() || path.size() > layout::kFileMaxName + 1) return {};
    const Name* const name = found->second.names.back();
    put_before(path, name->text);
    node = name->parent;
  }
  return path.empty() ? "." : path;
}

std::optional<std::string> Nodes::path(NodeId node) const {
  const std::lock_guard lock(mutex_);
  return path_of(node);
}

std::optional<std::string> Nodes::path(NodeId parent, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  std::optional<std::string> path = path_of(parent);
  if (!path) return {};
  if (*path == ".") return std::string(name);
  path->append("/").append(name);
  return path;
}

void Nodes::note_list(NodeId node, Time now) {
  const std::lock_guard lock(mutex_);
  // Names that others have moved may form a cycle, which ends at the directory that already has this time.
  for (auto found = nodes_.find(node); found != nodes_.end() && found->second.listed != now;) {
    found->second.listed = now;
    if (found->second.names.empty()) break;
    found = nodes_.find(found->second.names.back()->parent);
  }
}

Nodes::Clock::duration Nodes::kept_for(NodeId node, Time now) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.listed) return {};
  return std::max<Clock::duration>(kKept - (now - *found->second.listed), {});
}

std::vector<NodeId> Nodes::open_nodes() const {
  const std::lock_guard lock(mutex_);
  std::vector<NodeId> open;
  for (const auto& [number, node] : nodes_) {
    if (!node.open.empty()) open.push_back(number);
  }
  return open;
}

bool Nodes::is_open(NodeId node) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  return found != nodes_.end() && !found->second.open.empty();
}

std::shared_ptr<CachedPages> Nodes::pages(NodeId node) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return std::make_shared<CachedPages>();
  std::shared_ptr<CachedPages>& pages = found->second.pages;
  if (pages == nullptr) pages = std::make_shared<CachedPages>();
  return pages;
}

std::optional<Identity> Nodes::identity(NodeId node) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return {};
  return found->second.identity;
}

std::optional<NodeId> Nodes::find(NodeId parent, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto named = names_.find(Name{parent, std::string(name)});
  return named == names_.end() ? std::nullopt : std::optional(named->second);
}

std::optional<Identity> Nodes::identity(NodeId parent, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto named = names_.find(Name{parent, std::string(name)});
  if (named == names_.end()) return {};
  return nodes_.at(named->second).identity;
}

void Nodes::add_open(NodeId node, std::shared_ptr<OpenFile> file) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found != nodes_.end()) found->second.open.push_back(std::move(file));
}

std::shared_ptr<OpenFile> Nodes::remove_open(NodeId node, const OpenFile* file) {
  const std::lock_guard lock(mutex_);
  Batch batch(kept_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return nullptr;
  std::vector<std::shared_ptr<OpenFile>>& open = found->second.open;
  const auto place = std::ranges::find_if(open, [&](const auto& one) { return one.get() == file; });
  if (place == open.end()) return nullptr;
  std::shared_ptr<OpenFile> removed = std::move(*place);
  open.erase(place);
  collect(batch, node);
  return removed;
}

std::vector<std::shared_ptr<OpenFile>> Nodes::open_files(NodeId node) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? std::vector<std::shared_ptr<OpenFile>>() : found->second.open;
}

std::size_t Nodes::count() const {
  const std::lock_guard lock(mutex_);
  return nodes_.size();
}

}  // namespace wherry::file::mount
