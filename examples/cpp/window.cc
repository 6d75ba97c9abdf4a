// SPDX-License-Identifier: Apache-2.0
// window: registers a page and prints what a peer has written there; window TEXT: is that peer.
#include <wherry/wherry.hpp>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string_view>

namespace {

constexpr std::size_t kPage = 4096;
constexpr wherry::StreamOptions kOptions{.windows = true};

wherry::Result show() {
  const std::unique_ptr<void, decltype(&std::free)> page(std::aligned_alloc(kPage, kPage), &std::free);
  const std::span memory(static_cast<std::byte*>(page.get()), kPage);
  wherry::Listener listener = wherry::listen("wherry://*:2000", kOptions);
  wherry::Stream stream = listener.accept();
  const std::uint64_t offset = stream.windows().add(memory, wherry::Access::write);
  stream.send(offset);        // every failure is one of what follows
  std::uint64_t written = 0;  // by the time this has come, the peer has written, and this side took no part
  const wherry::Result got = stream.receive_all(written);
  if (got.ok() && written <= kPage) std::cout << std::string_view(static_cast<char*>(page.get()), written) << '\n';
  return got;
}

wherry::Result write(std::string_view text) {
  wherry::Stream stream = wherry::connect("wherry://0:2000", kOptions);
  std::uint64_t offset = 0;
  wherry::Result result = stream.receive_all(offset);
  if (!result.ok()) return result;
  result = stream.windows().write_to(std::as_bytes(std::span(text.data(), text.size())), offset, {.complete = true});
  if (!result.ok()) return result;
  return stream.send(std::uint64_t{text.size()});
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const wherry::Result result = count > 1 ? write(arguments[1]) : show();
    if (!result.ok()) std::cerr << result << '\n';
    return result.ok() && std::cout.flush() ? 0 : 1;
  } catch (const wherry::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
