// SPDX-License-Identifier: Apache-2.0
#include "wherry_ports.hpp"

#include <cerrno>
#include <charconv>
#include <random>
#include <string_view>

#include <wherry/error.hpp>

namespace zmq {
namespace {

constexpr unsigned kFirst = 0xC000;  // czmq's, and IANA's first dynamic port
constexpr unsigned kLast = 0xFFFF;

[[noreturn]] void refuse(const std::string& name) {
  throw wherry::Error(EINVAL, "bind", "wherry://" + name, "write a range of ports as *[60000-60100]");
}

/// Returns the number in the text, or `absent` if the text is empty.
unsigned number(const std::string& name, std::string_view text, unsigned absent) {
  if (text.empty()) return absent;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0 || value > kLast) refuse(name);
  return value;
}

}  // namespace

wherry_ports_t::wherry_ports_t(const std::string& name) : only_(name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos) return;
  node_ = name.substr(0, colon + 1);
  std::string port = name.substr(colon + 1);
  if (port == "0") only_ = node_ + "*";
  if (port == "!") port = "![-]";
  if (port.find('[') == std::string::npos) return;
  parse_range(name, port);
}

void wherry_ports_t::parse_range(const std::string& name, const std::string& range) {
  std::string_view rest = range;
  const bool random = rest.starts_with('!');
  if (random || rest.starts_with('*')) rest.remove_prefix(1);
  const std::size_t dash = rest.find('-');
  if (!rest.starts_with('[') || !rest.ends_with(']') || dash == std::string_view::npos) refuse(name);
  first_ = number(name, rest.substr(1, dash - 1), kFirst);
  const unsigned last = number(name, rest.substr(dash + 1, rest.size() - dash - 2), kLast);
  if (last < first_) refuse(name);
  only_.reset();
  count_ = last - first_ + 1;
  if (random) start_ = std::random_device()() % count_;
}

std::optional<std::string> wherry_ports_t::next() {
  if (tried_ == count_) return std::nullopt;
  const unsigned offset = (start_ + tried_++) % count_;
  return only_ ? *only_ : node_ + std::to_string(first_ + offset);
}

}  // namespace zmq
