// SPDX-License-Identifier: Apache-2.0
// Writes by the kernel's queues, without a library: io_submit and io_uring.
#pragma once

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

/// The result of one write by io_submit; less than 0: an errno.
inline long write_by_aio(int fd, const void* bytes, std::size_t length, std::uint64_t offset) {
  aio_context_t context = 0;
  if (syscall(SYS_io_setup, 1, &context) != 0) return -errno;
  iocb call{};
  call.aio_lio_opcode = IOCB_CMD_PWRITE;
  call.aio_fildes = static_cast<std::uint32_t>(fd);
  call.aio_buf = reinterpret_cast<std::uintptr_t>(bytes);
  call.aio_nbytes = length;
  call.aio_offset = static_cast<std::int64_t>(offset);
  iocb* calls = &call;
  io_event event{};
  long result = syscall(SYS_io_submit, context, 1L, &calls);
  if (result == 1) result = syscall(SYS_io_getevents, context, 1L, 1L, &event, nullptr) == 1 ? event.res : -EIO;
  if (result == -1) result = -errno;
  syscall(SYS_io_destroy, context);
  return result;
}

/// A ring for one call at a time.
class SmallRing {
 public:
  SmallRing() {
    fd_ = static_cast<int>(syscall(SYS_io_uring_setup, 2, &parameters_));
    if (fd_ < 0) return;
    calls_ = map<unsigned char>(IORING_OFF_SQ_RING, parameters_.sq_off.array + parameters_.sq_entries * 4);
    results_ =
        map<unsigned char>(IORING_OFF_CQ_RING, parameters_.cq_off.cqes + parameters_.cq_entries * sizeof(io_uring_cqe));
    entries_ = map<io_uring_sqe>(IORING_OFF_SQES, parameters_.sq_entries * sizeof(io_uring_sqe));
  }
  ~SmallRing() {
    if (fd_ < 0) return;
    munmap(calls_, parameters_.sq_off.array + parameters_.sq_entries * 4);
    munmap(results_, parameters_.cq_off.cqes + parameters_.cq_entries * sizeof(io_uring_cqe));
    munmap(entries_, parameters_.sq_entries * sizeof(io_uring_sqe));
    close(fd_);
  }
  SmallRing(const SmallRing&) = delete;
  SmallRing& operator=(const SmallRing&) = delete;

  /// The result of a call; less than 0: an errno.
  long call(const io_uring_sqe& entry) {
    if (fd_ < 0) return -ENOSYS;
    auto& tail = word(calls_, parameters_.sq_off.tail);
    const std::uint32_t place = tail.load() % parameters_.sq_entries;
    entries_[place] = entry;
    word(calls_, parameters_.sq_off.array + place * 4).store(place);
    tail.fetch_add(1);
    if (syscall(SYS_io_uring_enter, fd_, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) != 1) return -errno;
    auto& head = word(results_, parameters_.cq_off.head);
    io_uring_cqe result{};
    const std::uint32_t found = head.load() % parameters_.cq_entries;
    std::memcpy(&result, results_ + parameters_.cq_off.cqes + found * sizeof(result), sizeof(result));
    head.fetch_add(1);
    return result.res;
  }

 private:
  static std::atomic<std::uint32_t>& word(unsigned char* ring, std::uint32_t offset) {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(ring + offset);
  }
  template <typename Type>
  Type* map(std::uint64_t offset, std::size_t bytes) const {
    return static_cast<Type*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, static_cast<off_t>(offset)));
  }

  io_uring_params parameters_{};
  int fd_ = -1;
  unsigned char* calls_ = nullptr;
  unsigned char* results_ = nullptr;
  io_uring_sqe* entries_ = nullptr;
};

inline long write_by_ring(int fd, const void* bytes, std::size_t length, std::uint64_t offset) {
  io_uring_sqe entry{};
  entry.opcode = IORING_OP_WRITE;
  entry.fd = fd;
  entry.addr = reinterpret_cast<std::uintptr_t>(bytes);
  entry.len = static_cast<std::uint32_t>(length);
  entry.off = offset;
  return SmallRing().call(entry);
}

inline long truncate_by_ring(int fd, std::uint64_t length) {
  constexpr std::uint8_t kTruncate = 55;  // IORING_OP_FTRUNCATE of Linux 6.9
  io_uring_sqe entry{};
  entry.opcode = kTruncate;
  entry.fd = fd;
  entry.off = length;
  return SmallRing().call(entry);
}
