// SPDX-License-Identifier: Apache-2.0
// TSocket, TServerSocket and TParallelMergingFile as ROOT ships them, over TCP and over Unix sockets; and the same loop
// and messages over TScif and TServerScif.
#pragma once

#include <memory>

#include "bench/systems/root/program/task.hpp"

namespace wherry::bench::root {

enum class Sockets : std::uint8_t { tcp, unix_domain, scif };

/// How the two defects of the stock programs are dealt with.
enum class Stock : std::uint8_t {
  as_shipped,
  corrected,  ///< output with the files' compression; each file's bytes instead of whole blocks
};

std::unique_ptr<Server> make_tsocket_server(const Task& task, Sockets sockets, Stock stock);
std::unique_ptr<Workshop> make_tsocket_workshop(const Task& task, Stock stock);

}  // namespace wherry::bench::root
