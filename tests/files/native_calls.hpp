// SPDX-License-Identifier: Apache-2.0
// What files_native_calls does with each descriptor, and with names.
#pragma once

#include <stddef.h>

struct Kind {
  const char* name;
  int (*open)(void);
};

struct Call {
  const char* name;
  long (*make)(int fd);
};

/// Of a call after which the offset does not matter.
enum { kNoOffset = -1000 };

extern const struct Call calls[];
extern const size_t count_calls;

/// A name in the folder of the test; until the next one.
const char* in_folder(const char* name);
void say(const char* what, const char* of, long result);
/// Calls whose arguments are names: those that open, truncate and execute.
void make_calls_by_name(void);
