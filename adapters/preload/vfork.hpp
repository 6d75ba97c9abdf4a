// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::preload {

namespace detail {
// State of the thread that called vfork, while its child runs in its place.
extern constinit thread_local bool in_vfork_child __attribute__((tls_model("initial-exec")));
extern constinit thread_local bool vfork_child_is_filtered __attribute__((tls_model("initial-exec")));
}  // namespace detail

/// Whether this is the child of a vfork, which runs in its parent's memory: the parent finds whatever is stored here.
inline bool in_vfork_child() noexcept { return detail::in_vfork_child; }

}  // namespace wherry::preload
