// SPDX-License-Identifier: Apache-2.0
//
// Which system is driven by what. bench/systems/root/systems.cc knows what each can do.
#include <array>
#include <functional>
#include <stdexcept>

#include "bench/systems/root/program/alone.hpp"
#include "bench/systems/root/program/task.hpp"
#include "bench/systems/root/program/tsocket.hpp"
#include "bench/systems/root/program/wherry.hpp"

namespace wherry::bench::root {
namespace {

struct Way {
  const char* system;
  std::unique_ptr<Server> (*server)(const Task& task);  // Null: none.
  std::unique_ptr<Workshop> (*workshop)(const Task& task);
};

template <Sockets sockets, Stock stock>
constexpr Way tsocket(const char* name) {
  return {name, [](const Task& task) { return make_tsocket_server(task, sockets, stock); },
          [](const Task& task) { return make_tsocket_workshop(task, stock); }};
}

const std::array kWays{
    Way{"wherry", make_window_server, make_window_workshop},
    tsocket<Sockets::scif, Stock::corrected>("wherry-tscif"),
    tsocket<Sockets::tcp, Stock::as_shipped>("tsocket-tcp"),
    tsocket<Sockets::tcp, Stock::corrected>("tsocket-tcp-corrected"),
    tsocket<Sockets::unix_domain, Stock::as_shipped>("tsocket-unix"),
    tsocket<Sockets::unix_domain, Stock::corrected>("tsocket-unix-corrected"),
    Way{"hadd", make_hadd, make_own_files},
    Way{"tbuffermerger", nullptr, make_buffer_merger},
    Way{"rntuple", nullptr, make_ntuple_writer},
};

const Way& way_of(const std::string& system) {
  for (const Way& way : kWays) {
    if (way.system == system) return way;
  }
  throw std::invalid_argument("there is no system '" + system + "'");
}

}  // namespace

bool has_server(const Job& job) { return way_of(job.system).server != nullptr; }
std::unique_ptr<Server> make_server(const Task& task) { return way_of(task.job.system).server(task); }
std::unique_ptr<Workshop> make_workshop(const Task& task) { return way_of(task.job.system).workshop(task); }

}  // namespace wherry::bench::root
