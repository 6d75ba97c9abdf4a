// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/fork_generation.hpp"
#include "file/host.hpp"
#include "file/path_choice.hpp"
#include "file/source.hpp"

namespace wherry::file {

/// A connection to a host's server that files of this process share.
class HostFiles {
 public:
  /// @param waits  for a server that does not listen yet
  HostFiles(std::string address, std::chrono::milliseconds timeout, bool waits);

  /// A connection to that server: a further one, up to a handful, where calls on the others waited for each other.
  /// Throws Error.
  static std::shared_ptr<HostFiles> get(const std::string& address, std::chrono::milliseconds timeout);

  [[nodiscard]] Host& host() { return host_; }
  [[nodiscard]] const Origin& origin() const { return origin_; }
  [[nodiscard]] PathChoice& choice() { return choice_; }
  /// What a file's device is called in this card: as the kernel does where it is the same kernel.
  [[nodiscard]] std::uint64_t device_of(const layout::FileStatus& status) const;
  /// Whether the file system of that file may be cached; asked once for each device.
  bool can_be_cached(Host::Handle file, std::uint64_t device);

 private:
  friend class HostSource;
  class Call;

  static std::shared_ptr<HostFiles> least_used(const std::string& address, std::chrono::milliseconds timeout,
                                               bool& enough);

  Origin origin_;
  Host host_;
  PathChoice choice_;
  std::atomic<int> files_{0};
  std::atomic<int> calls_{0};         // under way, until two met
  std::atomic<bool> met_{false};      // calls did: they may have waited for each other
  std::atomic<bool> refused_{false};  // a further connection was
  std::mutex mutex_;
  std::map<std::uint64_t, bool> cacheable_;  // by device
};

/// A file of a host.
class HostSource : public Source {
 public:
  /// Opens. Throws Error if the connection fails; `error` is what the host says.
  HostSource(std::shared_ptr<HostFiles> files, const std::string& name, std::uint32_t flags, std::uint32_t mode,
             int& error, Look& look);
  ~HostSource() override;

  Result read(std::uint64_t offset, std::span<const iovec> into) override;
  Result write(std::uint64_t offset, std::span<const iovec> from) override;
  Result append(std::span<const iovec> from) override;
  int flush(bool data_only) override;
  int look(Look& look, bool writers) override;
  int set_size(std::uint64_t size) override;
  int close() override;
  /// This process copies: a page that there is no room for would end it with SIGBUS.
  bool can_read_into(std::span<std::byte> memory) const override;
  [[nodiscard]] bool is_remote() const override { return true; }
  [[nodiscard]] bool inherited() const override { return files_->origin().inherited(); }
  [[nodiscard]] bool can_be_cached(const layout::FileStatus& status) override;
  [[nodiscard]] PathChoice& choice() override { return files_->choice(); }

 private:
  template <class Call>
  Result whole(std::span<const iovec> parts, Call call);

  std::shared_ptr<HostFiles> files_;
  std::string name_;
  Host::Handle handle_ = 0;
  bool open_ = false;
};

}  // namespace wherry::file
