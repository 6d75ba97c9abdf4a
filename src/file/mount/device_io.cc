// SPDX-License-Identifier: Apache-2.0
#include "file/mount/device_io.hpp"

#include <linux/fuse.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "file/mount/layout/passthrough.hpp"
#include "file/mount/layout/resend.hpp"
#include "file/mount/operations_serve.hpp"

namespace wherry::file::mount {
namespace {

/// The kernel's first request, read by this thread. The same thread answers it.
struct Offer {
  std::uint64_t request = 0;  ///< 0: none
  bool removes_set_id = false;
  bool passthrough = false;
};
thread_local Offer offer;

/// An earlier daemon's request is answered only to libfuse: the kernel already has its answer.
thread_local bool is_answered = false;

std::atomic<bool> offers_resend{false};

/// The buffer that this thread reads into. Its pages are populated first. A kill while the kernel copies to missing
/// pages would fail the request.
thread_local const void* populated = nullptr;
void populate(void* buffer, std::size_t bytes) {
  if (std::exchange(populated, buffer) == buffer) return;
  constexpr std::size_t kPage = 4096;
  void* begin = buffer;
  if (std::align(kPage, kPage, begin, bytes) != nullptr) ::madvise(begin, bytes / kPage * kPage, MADV_POPULATE_WRITE);
}

/// Backing number for this thread's next answer; 0: none.
thread_local int opens_by = 0;

/// Copies the beginning of a message, if it is long enough.
template <class T>
bool take(std::span<const std::byte> message, T& into, std::size_t bytes = sizeof(T)) {
  if (message.size() < bytes) return false;
  std::memcpy(&into, message.data(), bytes);
  return true;
}

/// Reads the first request.
void take_offer(std::uint64_t request, std::span<const std::byte> content) {
  fuse_init_in init{};
  constexpr std::size_t kToFlags = offsetof(fuse_init_in, flags) + sizeof init.flags;
  constexpr std::size_t kToFlags2 = offsetof(fuse_init_in, flags2) + sizeof init.flags2;
  if (!take(content, init, kToFlags)) return;
  offer = {.request = request, .removes_set_id = (init.flags & FUSE_HANDLE_KILLPRIV_V2) != 0};
  if ((init.flags & FUSE_INIT_EXT) == 0 || !take(content, init, kToFlags2)) return;
  offer.passthrough = (init.flags2 & layout::kFusePassthrough) != 0;
  offers_resend.store((init.flags2 & layout::kFuseHasResend) != 0, std::memory_order_relaxed);
}

ssize_t read_request(int device, void* buffer, std::size_t bytes, void* system) {
  KeptState* const kept = static_cast<FileSystem*>(system)->tree().kept();
  if (kept != nullptr) populate(buffer, bytes);
  const ssize_t got = ::read(device, buffer, bytes);
  if (got <= 0) return got;
  const auto message = std::span(static_cast<const std::byte*>(buffer), static_cast<std::size_t>(got));
  fuse_in_header header{};
  if (!take(message, header)) return got;
  served_request() = {.number = header.unique & ~layout::kFuseUniqueResend,
                      .repeated = (header.unique & layout::kFuseUniqueResend) != 0};
  if (header.opcode != FUSE_INIT) return got;
  take_offer(header.unique, message.subspan(sizeof header));
  KeptState::Batch(kept).add_text(layout::KeptWord::first_request,
                                  {static_cast<const char*>(buffer), static_cast<std::size_t>(got)});
  return got;
}

/// Changes the answer to the first request.
void agree(const Offer& offered, std::span<std::byte> content, Passthrough& passthrough, int device) {
  fuse_init_out init{};
  if (!take(content, init)) return;
  if (offered.removes_set_id) init.flags |= FUSE_HANDLE_KILLPRIV_V2;
  if (offered.passthrough && passthrough.start(device)) {
    constexpr std::size_t kStack = offsetof(fuse_init_out, flags2);
    static_assert(kStack + sizeof(layout::FuseInitStack) <= sizeof init);
    init.flags |= FUSE_INIT_EXT;
    const layout::FuseInitStack stack{.flags2 = init.flags2 | layout::kFusePassthrough, .max_stack_depth = 1};
    std::memcpy(reinterpret_cast<std::byte*>(&init) + kStack, &stack, sizeof stack);
  }
  std::memcpy(content.data(), &init, sizeof init);
}

/// Changes the answer to an open: its last part names the backing.
void name_backing(int backing, std::span<std::byte> content) {
  layout::FuseOpened opened{};
  if (content.size() < sizeof opened) return;
  const auto last = content.last(sizeof opened);
  std::memcpy(&opened, last.data(), sizeof opened);
  opened.flags |= layout::kFuseOpenPassthrough;
  opened.backing = backing;
  std::memcpy(last.data(), &opened, sizeof opened);
}

ssize_t write_answer(int device, iovec* parts, int count, void* system) {
  const Offer offered = std::exchange(offer, {});
  fuse_out_header header{};
  if ((offered.request != 0 || opens_by != 0) && count == 2 && parts[0].iov_len == sizeof header) {
    std::memcpy(&header, parts[0].iov_base, sizeof header);
    const auto content = std::span(static_cast<std::byte*>(parts[1].iov_base), parts[1].iov_len);
    if (header.error == 0 && header.unique == offered.request && offered.request != 0)
      agree(offered, content, static_cast<FileSystem*>(system)->passthrough(), device);
    else if (header.error == 0 && opens_by != 0)
      name_backing(opens_by, content);
  }
  if (!is_answered) return ::writev(device, parts, count);
  ssize_t bytes = 0;
  for (const iovec& part : std::span(parts, static_cast<std::size_t>(count)))
    bytes += static_cast<ssize_t>(part.iov_len);
  return bytes;
}

}  // namespace

const fuse_custom_io& device_io() {
  static constexpr fuse_custom_io kFunctions{
      .writev = write_answer, .read = read_request, .splice_receive = nullptr, .splice_send = nullptr};
  return kFunctions;
}

bool has_resend() { return offers_resend.load(std::memory_order_relaxed); }

bool agree_again(fuse_session* session, std::string request) {
  const auto message = std::as_bytes(std::span(request));
  fuse_in_header header{};
  if (!take(message, header) || header.opcode != FUSE_INIT) return false;
  take_offer(header.unique, message.subspan(sizeof header));
  is_answered = true;
  fuse_buf buffer{};  // NOLINT(bugprone-invalid-enum-default-initialization): no flags
  buffer.mem = request.data();
  buffer.size = request.size();
  fuse_session_process_buf(session, &buffer);
  is_answered = false;
  return fuse_session_exited(session) == 0;
}

int ask_to_resend(int device) {
  const fuse_out_header notification{.len = sizeof notification, .error = layout::kFuseNotifyResend, .unique = 0};
  return ::write(device, &notification, sizeof notification) == sizeof notification ? 0 : errno;
}

OpenAnswer::OpenAnswer(const Passthrough::Backing* backing) { opens_by = backing == nullptr ? 0 : backing->number(); }

OpenAnswer::~OpenAnswer() { opens_by = 0; }

}  // namespace wherry::file::mount
