// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/fork_generation.hpp"
#include "file/api/source.hpp"
#include "file/client/host.hpp"

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
  /// Under the same kernel a device's own number, else one that no device of another host has.
  [[nodiscard]] std::uint64_t device_of(const layout::FileStatus& status) const;

 private:
  friend class HostSource;
  class Call;

  static std::shared_ptr<HostFiles> least_used(const std::string& address, std::chrono::milliseconds timeout,
                                               bool& enough);

  Origin origin_;
  Host host_;
  std::atomic<int> files_{0};
  std::atomic<int> calls_{0};         // under way, until two met
  std::atomic<bool> met_{false};      // calls did: they may have waited for each other
  std::atomic<bool> refused_{false};  // a further connection was
};

/// A file of a host.
class HostSource : public Source {
 public:
  /// Opens. Throws Error if the connection fails; `error` is what the host says.
  HostSource(std::shared_ptr<HostFiles> files, const std::string& name, std::uint32_t flags, std::uint32_t mode,
             int& error, layout::FileStatus& status);
  ~HostSource() override;

  Result read(std::uint64_t offset, std::span<const iovec> into) override;
  Result write(std::uint64_t offset, std::span<const iovec> from) override;
  Result append(std::span<const iovec> from) override;
  int flush(bool data_only) override;
  int status(layout::FileStatus& status) override;
  int set_size(std::uint64_t size) override;
  int close() override;
  [[nodiscard]] bool is_remote() const override { return true; }
  [[nodiscard]] bool inherited() const override { return files_->origin().inherited(); }

 private:
  template <class Call>
  Result whole(std::span<const iovec> parts, Call call);

  std::shared_ptr<HostFiles> files_;
  std::string name_;
  Host::Handle handle_ = 0;
  bool open_ = false;
};

}  // namespace wherry::file
