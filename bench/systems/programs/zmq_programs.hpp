// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/harness/registry.hpp"

namespace wherry::bench {

/// Adds libzmq's own programs for throughput and latency (local_thr, remote_thr, local_lat, remote_lat) over each of
/// its transports: zmq-wherry, zmq-tcp, zmq-ipc, for `wherry bench zmq` alone. They and the library are those that
/// `make zmq` builds: in bin and lib of the folder that WHERRY_BENCH_ZMQ names, else of ../lib/wherry/zmq beside the
/// program.
void add_zmq_programs(Registry& registry);

}  // namespace wherry::bench
