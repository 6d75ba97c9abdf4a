// SPDX-License-Identifier: Apache-2.0
// For tests: a file server that says what the test wants.
#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <wherry/wherry.hpp>

#include "base/child_process.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// A process that opens every file, and answers any other request as it is told. Clients come one after the other.
class AnsweringServer {
 public:
  struct Answer {
    layout::FileAnswer head{};
    std::vector<std::byte> payload{};
  };

  explicit AnsweringServer(std::function<Answer(const layout::FileRequest&)> answer)
      : server_([this, answer = std::move(answer)] { return serve(answer); }) {
    while (!place_->ready) std::this_thread::yield();
  }
  [[nodiscard]] std::string address() const { return place_->address.data(); }

 private:
  struct Place {
    std::array<char, 128> address{};
    std::atomic<bool> ready{false};
  };

  template <class T>
  static std::span<std::byte> bytes_of(T& value) {
    return std::as_writable_bytes(std::span(&value, 1));
  }

  bool serve(const std::function<Answer(const layout::FileRequest&)>& answer) {
    Listener listener = listen("wherry+shm://*:*");
    std::strncpy(place_->address.data(), listener.local().to_string().c_str(), place_->address.size() - 1);
    place_->ready = true;
    while (true) {
      Stream stream = listener.accept();
      layout::FileHello hello{};
      if (!stream.receive_all(bytes_of(hello)).ok()) continue;
      stream.send(bytes_of(hello));
      layout::FileRequest request{};
      while (stream.receive_all(bytes_of(request)).ok()) {
        std::vector<std::byte> name(request.name_bytes);
        if (!name.empty() && !stream.receive_all(name).ok()) break;
        const bool opens = request.call == static_cast<std::uint32_t>(layout::FileCall::open);
        Answer said = opens ? opened(request) : answer(request);
        stream.send(bytes_of(said.head));
        stream.send(said.payload);
      }
    }
    return true;
  }

  static Answer opened(const layout::FileRequest& request) {
    constexpr std::size_t kBytes = sizeof(layout::FileStatus);
    return {.head = {.id = request.id, .last = 1, .error = 0, .payload_bytes = kBytes, .value = 1, .position = 0},
            .payload = std::vector<std::byte>(kBytes)};
  }

  SharedValue<Place> place_;
  Child server_;
};

}  // namespace wherry::file
