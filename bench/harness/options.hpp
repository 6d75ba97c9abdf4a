// SPDX-License-Identifier: Apache-2.0
// The options that all questions have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wherry::bench {

/// Of `wherry bench root` alone. Empty: by default.
struct RootOptions {
  std::uint32_t files = 0;             ///< of each worker; 0: as many as --bytes allow
  std::vector<std::string> figures{};  ///< transfer, fill, merge
  std::vector<std::string> trees{};    ///< numbers, higgs
  bool processes = false;
  bool threads = false;
};

/// Of `wherry bench file` alone.
struct FileOptions {
  std::vector<std::string> figures{};  ///< as bench/questions/file/question.hpp names them; empty: all
  std::string directory = "/var/tmp";  ///< /tmp may lie in memory, where nothing is cold
  std::vector<std::uint32_t> threads{};
  bool explain = false;  ///< says which way the path `auto` chose, and why
};

/// Of `wherry bench mpi` alone. Empty: by default.
struct MpiOptions {
  std::vector<std::string> figures{};
  std::string budget{};  ///< of each mailbox
};

/// Of `wherry bench mailbox` alone.
struct MailboxOptions {
  std::uint64_t budget = 384 << 10;        ///< bytes of all mailboxes together
  std::vector<std::uint32_t> connected{};  ///< senders to one receiver; empty: by default
};

/// Of `wherry bench net` alone: between real hosts instead of two network namespaces.
struct NetOptions {
  bool listens = false;        ///< serve a program on another host
  std::string connect{};       ///< the host that listens; empty: none
  std::uint16_t port = 46990;  ///< of the connection between the two programs
};

struct Options {
  std::vector<std::uint64_t> sizes{};  ///< bytes of one message
  std::uint64_t bytes = 1 << 30;       ///< payload of one sample, at most
  double seconds = 0.5;                ///< time of one sample, at most, roughly; 0: that is not how samples end
  int samples = 5;
  std::vector<std::uint32_t> senders{1};
  std::vector<std::string> modes{"handover", "touched"};
  std::vector<std::string> systems{};  ///< empty: all that are found
  std::vector<int> cores{};            ///< to run the receiver and the sender on
  std::uint64_t seed = 1;
  bool smoke = false;
  std::vector<std::string> seeds{};  ///< of `wherry bench seeds` alone; empty: all
  RootOptions root{};
  FileOptions file{};
  MpiOptions mpi{};
  MailboxOptions mailbox{};
  NetOptions net{};
};

}  // namespace wherry::bench
