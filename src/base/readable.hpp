// SPDX-License-Identifier: Apache-2.0
// Quantities as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wherry {

/// "1.5 GB", "312 kB", "17 B": powers of 1000, as throughputs are given. "0.25 B" is half a byte in two seconds.
std::string human_bytes(double bytes);
inline std::string human_bytes(std::uint64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

/// "1.5 GB/s"; "-" where no time passed.
std::string human_rate(std::uint64_t bytes, double seconds);

/// "12.30 s", "4.2 ms", "17 us".
std::string human_time(double seconds);

/// "1 file", "2 files", "2 directories", "2 batches".
std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace wherry
