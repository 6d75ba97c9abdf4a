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

/// A connection to a host's server, shared by files of this process.
class HostFiles {
 public:
  /// @param waits  for a listener
  HostFiles(std::string address, std::chrono::milliseconds timeout, bool waits);

  /// Returns a connection to that server. Makes a further one, up to a handful, if calls on the others overlapped.
  /// Throws Error.
  static std::shared_ptr<HostFiles> get(const std::string& address, std::chrono::milliseconds timeout);

  [[nodiscard]] Host& host() { return host_; }
  [[nodiscard]] const Origin& origin() const { return origin_; }
  /// Under the same kernel the device's own number, otherwise a number that no device of another host has.
  [[nodiscard]] std::uint64_t device_of(const layout::FileStatus& status) const;

 private:
  friend class HostSource;
  class Call;

  static std::shared_ptr<HostFiles> least_used(const std::string& address, std::chrono::milliseconds timeout,
                                               bool& enough);

  Origin origin_;
  Host host_;
  std::atomic<int> files_{0};
  std::atomic<int> calls_{0};            // calls in progress; not counted once two have overlapped
  std::atomic<bool> overlapped_{false};  // two calls overlapped: they may have waited for each other
  std::atomic<bool> refused_{false};     // a further connection was refused
};

/// A file of a host.
class HostSource : public Source {
 public:
  /// Opens the file. Throws Error if the connection fails; `error` is the host's answer.
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
