// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A function that programs find in this library before the C library's.
#define WHERRY_HOOK extern "C" __attribute__((visibility("default")))
