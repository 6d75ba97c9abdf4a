// SPDX-License-Identifier: Apache-2.0
// Formats quantities for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wherry {

/// Returns "1.5 GB", "312 kB", "17 B": powers of 1000, as is usual for throughputs. Rates below one byte are possible:
/// "0.25 B".
std::string human_bytes(double bytes);
inline std::string human_bytes(std::uint64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

/// Returns "1.5 GB/s"; "-" if no time has passed.
std::string human_rate(std::uint64_t bytes, double seconds);

/// Returns "12.30 s", "4.2 ms", "17 us".
std::string human_time(double seconds);

/// Returns "1 file", "2 files", "2 directories", "2 batches".
std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace wherry
