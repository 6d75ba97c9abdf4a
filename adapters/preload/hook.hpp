// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

/// A function that programs find here before the C library's.
#define WHERRY_HOOK extern "C" __attribute__((visibility("default")))

/// Defines another name of the C library for a hook in the same file, such as those for large files, whose offsets have
/// the same size. The compiler's alias attribute is not used: it would compare the attributes that headers give to only
/// one of the names.
#define WHERRY_OTHER_NAME(name, hook) asm(".globl " #name "\n.set " #name ", " #hook)
static_assert(sizeof(off_t) == sizeof(off64_t));
