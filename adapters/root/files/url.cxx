// SPDX-License-Identifier: Apache-2.0
#include "url.hpp"

#include <cerrno>
#include <charconv>

#include <wherry/error.hpp>

namespace wherry::root {
namespace {

[[noreturn]] void refuse(std::string_view url, const std::string& why) {
  throw Error(EINVAL, "open", std::string(url), why + "; use wherry://NODE:PORT//PATH?reconnect=SECONDS");
}

std::chrono::milliseconds seconds_of(std::string_view text, std::string_view url) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || !(seconds >= 0 && seconds < 1e6)) {
    refuse(url, "reconnect= needs a number of seconds, at least 0 and less than 1000000");
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

}  // namespace

FileUrl parse_url(std::string_view url) {
  const std::size_t authority = url.find("://");
  const std::size_t path = authority == url.npos ? url.npos : url.find('/', authority + 3);
  if (path == url.npos) refuse(url, "the URL has no file name");
  FileUrl parsed;
  parsed.address = url.substr(0, path);
  std::string_view rest = url.substr(path + 1);
  std::string_view options;
  if (const std::size_t mark = rest.find('?'); mark != rest.npos) {
    options = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  if (rest.empty()) refuse(url, "the URL has no file name");
  parsed.name = rest;
  while (!options.empty()) {
    const std::size_t end = std::min(options.find('&'), options.size());
    const std::string_view option = options.substr(0, end);
    options.remove_prefix(std::min(end + 1, options.size()));
    constexpr std::string_view kReconnect = "reconnect=";
    if (!option.starts_with(kReconnect)) refuse(url, "there is no option '" + std::string(option) + "'");
    parsed.reconnect = seconds_of(option.substr(kReconnect.size()), url);
  }
  return parsed;
}

}  // namespace wherry::root
