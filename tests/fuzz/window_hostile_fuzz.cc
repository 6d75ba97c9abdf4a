// SPDX-License-Identifier: Apache-2.0
// Windows with a hostile peer: whatever it says about its windows and its RMA, a call returns and touches nothing but
// what the fabric reached for it. What is reached is a heap block of exactly the size asked for, so that one byte
// outside is seen.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/fuzz/input.hpp"
#include "window/space.hpp"

namespace wherry::fuzz {
namespace {

using namespace std::chrono_literals;
using layout::WindowPage;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostReached = 16 * kPage;

void require(bool holds) {
  if (!holds) std::abort();
}

class Block final : public memory::RemoteRegion {
 public:
  Block(Input& input, std::size_t bytes, bool maps) : input_(input), bytes_(bytes), maps_(maps) {}
  std::byte* map() const override { return maps_ ? bytes_.data() : nullptr; }
  bool put(std::uint64_t offset, std::span<const std::byte> source) override {
    require(offset <= bytes_.size() && source.size() <= bytes_.size() - offset);
    std::memcpy(bytes_.data() + offset, source.data(), source.size());
    return !input_.one_in(16);
  }
  bool get(std::span<std::byte> destination, std::uint64_t offset) override {
    require(offset <= bytes_.size() && destination.size() <= bytes_.size() - offset);
    std::memcpy(destination.data(), bytes_.data() + offset, destination.size());
    return !input_.one_in(16);
  }
  bool signal(std::uint64_t offset, std::uint64_t value) override {
    return put(offset, std::as_bytes(std::span(&value, 1)));
  }
  int map_at(std::uint64_t offset, std::size_t bytes, int, std::byte* where) override {
    require(offset <= bytes_.size() && bytes <= bytes_.size() - offset);
    void* got = ::mmap(where, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return got == MAP_FAILED ? ENOMEM : 0;
  }

 private:
  Input& input_;
  mutable std::vector<std::byte> bytes_;
  const bool maps_;
};

/// Memory of the victim's own, exposed.
class Own final : public memory::LocalRegion {
 public:
  explicit Own(std::span<std::byte> memory)
      : piece_{.bytes = memory.size(), .key = {1, 1}, .view = memory.data(), .lasting = true} {}
  std::span<const Piece> pieces() const override { return {&piece_, 1}; }
  void keep() noexcept override {}

 private:
  Piece piece_;
};

struct Pages {
  Pages() : page(static_cast<WindowPage*>(std::aligned_alloc(kPage, sizeof(WindowPage)))) {
    std::memset(static_cast<void*>(page), 0, sizeof *page);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { std::free(page); }
  WindowPage* page;
};

class HostileWindows final : public fabric::Connection, private fabric::Exposure {
 public:
  HostileWindows(Input& input, bool maps) : input_(input), maps_(maps) {}

  std::span<std::byte> segment() const override {
    return {reinterpret_cast<std::byte*>(own_.page), sizeof(WindowPage)};
  }
  std::byte* map() const override { return maps_ ? reinterpret_cast<std::byte*>(peers_.page) : nullptr; }
  std::size_t remote_bytes() const override { return sizeof(WindowPage); }
  std::size_t put(std::uint64_t, std::span<const std::byte> source) override { return source.size(); }
  bool get(std::span<std::byte>, std::uint64_t) override { return true; }
  fabric::Exposure* exposure() override { return this; }
  std::shared_ptr<memory::LocalRegion> expose(std::span<std::byte> memory) override {
    return std::make_shared<Own>(memory);
  }
  std::shared_ptr<memory::RemoteRegion> reach(const memory::RemoteKey&, std::size_t bytes, int& error) override {
    scribble();
    error = ENXIO;
    if (bytes > kMostReached || input_.one_in(16)) return nullptr;
    return std::make_shared<Block>(input_, bytes, maps_);
  }
  bool signal(std::uint64_t offset, std::uint64_t value, fabric::Bell) override {
    require(offset % 8 == 0 && offset <= sizeof(WindowPage) - 8);
    std::memcpy(reinterpret_cast<std::byte*>(peers_.page) + offset, &value, sizeof value);
    scribble();
    return !input_.one_in(16);
  }
  Result flush(fabric::Deadline) override {
    return input_.one_in(16) ? Result::failure(input_.one_in(2) ? ETIMEDOUT : ECONNRESET) : Result::moved(0);
  }
  void arm(fabric::Bell) override {}
  void disarm(fabric::Bell) override {}
  bool silence(fabric::Bell) override { return false; }
  fabric::Wake wait(fabric::Bell, fabric::Deadline) override { return fabric::Wake::gone; }
  int descriptor(fabric::Bell) override { return -1; }
  void notify_self(fabric::Bell) override {}
  bool peer_gone() override { return input_.one_in(32); }
  const Peer& peer() const override { return peer_; }
  const fabric::Greeting& peer_greeting() const override { return greeting_; }

  static void changes(WindowPage& page, std::size_t used) {
    page.changes = layout::window_changes((page.changes >> 16) + 1, used);
  }
  /// The peer writes an entry, a word, or anything.
  void scribble() {
    while (input_.one_in(2)) {
      WindowPage& page = *own_.page;
      const std::size_t index = input_.number<std::uint8_t>() % 8;
      layout::WindowEntry& entry = page.entries[index];
      switch (input_.number<std::uint8_t>() % 6) {
        case 0:
        case 1:  // a window that makes sense
          entry.offset = std::uint64_t{input_.number<std::uint8_t>()} % 32 * kPage;
          entry.bytes = (1 + std::uint64_t{input_.number<std::uint8_t>()} % 12) * kPage;
          entry.protection = input_.one_in(4) ? input_.number<std::uint8_t>() : 3U;
          page.sequences[index] += 2 - (page.sequences[index] + 1) % 2;
          changes(page, 8);
          break;
        case 2: {
          layout::Word* const words[] = {&entry.offset, &entry.bytes,           &entry.protection, &entry.place,
                                         &page.changes, &page.sequences[index], &page.started,     &page.completed,
                                         &page.closed,  &page.marks[index]};
          *words[input_.number<std::uint8_t>() % std::size(words)] = input_.number<std::uint64_t>();
          changes(page, layout::windows_used(page.changes));
          break;
        }
        case 3:
          ++page.sequences[index];
          changes(page, layout::windows_used(page.changes));
          break;
        case 4:
          page.completed = page.started.load();
          page.closed = 0;
          break;
        default:
          page.started = input_.number<std::uint8_t>();
          break;
      }
    }
  }

 protected:
  bool notify(fabric::Bell) override { return true; }

 private:
  Input& input_;
  const bool maps_;
  Pages own_, peers_;
  Peer peer_;
  fabric::Greeting greeting_{};
};

void one_call(window::Space& space, Input& input, std::span<std::byte> memory) {
  const auto number = [&] { return std::uint64_t{input.number<std::uint16_t>()} * 4 % (40 * kPage); };
  const auto anything = [&] { return input.one_in(8) ? input.number<std::uint64_t>() : number(); };
  const window::RmaOptions options{.complete = input.one_in(2), .ordered = input.one_in(2)};
  const std::size_t size = number() % (memory.size() + 1);
  switch (input.number<std::uint8_t>() % 9) {
    case 0:
      return (void)space.register_memory(memory.first(size / kPage * kPage), number() / kPage * kPage, 3);
    case 1:
      return (void)space.unregister(number() / kPage * kPage, anything());
    case 2:
      return (void)space.write_to(memory.first(size), anything(), options);
    case 3:
      return (void)space.read_from(memory.first(size), anything(), options);
    case 4:
      return (void)space.write_to(anything(), anything(), anything(), options);
    case 5:
      return (void)space.read_from(anything(), anything(), anything(), options);
    case 6:
      return (void)space.wait(space.mark(input.one_in(2)), 0ns);
    case 7:
      return (void)space.signal(input.one_in(2), window::Signal{anything(), 1}, window::Signal{anything(), 2}, 0ns);
    default: {
      const std::size_t bytes = number() / kPage * kPage;
      const auto mapped = space.map(nullptr, number() / kPage * kPage, bytes, PROT_READ);
      if (mapped.error == 0) ::munmap(mapped.start, bytes);
    }
  }
}

}  // namespace
}  // namespace wherry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  fuzz::Input input({data, size});
  fuzz::HostileWindows connection(input, input.one_in(2));
  void* start = ::mmap(nullptr, 16 * fuzz::kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  {
    window::Space space(connection, 0);
    while (!input.empty()) {
      connection.scribble();
      fuzz::one_call(space, input, {static_cast<std::byte*>(start), 16 * fuzz::kPage});
    }
  }
  ::munmap(start, 16 * fuzz::kPage);
  return 0;
}
