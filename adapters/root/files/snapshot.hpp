// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::root {

/// Whether RDataFrame::Snapshot, in this thread, is opening a file to write an RNTuple. Snapshot would later read the
/// file by the same URL. RNTuple opens URLs with its own functions, which no plugin can extend; they throw, and that
/// ends the process after all results have been computed (ROOT 6.40).
bool is_ntuple_snapshot();

}  // namespace wherry::root
