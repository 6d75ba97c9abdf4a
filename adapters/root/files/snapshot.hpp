// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::root {

/// Whether RDataFrame::Snapshot is opening a file to write an RNTuple, in this thread and now. It opens what it has
/// written by the same URL then, for which RNTuple has functions of its own that no plugin can add to: what they throw
/// ends the process after all has been computed (6.40).
bool is_ntuple_snapshot();

}  // namespace wherry::root
