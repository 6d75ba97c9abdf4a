// SPDX-License-Identifier: Apache-2.0
#include "base/loaded_libraries.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace wherry {
namespace {

TEST(LoadedLibraries, TheNextSymbolIsTheOneThatDlsymFinds) {
  // The C library has several versions of the last three, one of them the default.
  for (const char* const name :
       {"getpid", "read", "open64", "fclose", "pthread_cond_wait", "posix_spawn", "realpath"}) {
    const NextSymbol found = next_symbol(name);
    ASSERT_TRUE(found.is_certain) << name;
    EXPECT_NE(found.address, nullptr) << name;
    EXPECT_EQ(found.address, dlsym(RTLD_NEXT, name)) << name;
  }
}

TEST(LoadedLibraries, SymbolsOfOneLibraryHaveTheSameLibrary) {
  EXPECT_EQ(next_symbol("getpid").library, next_symbol("getppid").library);
  EXPECT_NE(next_symbol("getpid").library, next_symbol("_ZSt9terminatev").library);
}

TEST(LoadedLibraries, AFunctionThatTheLoaderChoosesIsLeftToDlsym) {
  // glibc has several implementations of these, for different processors.
  EXPECT_FALSE(next_symbol("memcpy").is_certain);
}

TEST(LoadedLibraries, ASymbolThatNoLibraryHasIsNull) {
  const NextSymbol found = next_symbol("wherry_no_such_function");
  EXPECT_TRUE(found.is_certain);
  EXPECT_EQ(found.address, nullptr);
}

TEST(LoadedLibraries, TellsWhatLibrariesDefineAndNeed) {
  EXPECT_TRUE(any_library_defines("getpid"));
  EXPECT_FALSE(any_library_defines("wherry_no_such_function"));
  EXPECT_TRUE(any_library_needs("libc.so"));
  EXPECT_FALSE(any_library_needs("libwherry-no-such-library"));
}

TEST(LoadedLibraries, TellsInWhichLibraryAnAddressIs) {
#if !__GLIBC_PREREQ(2, 35)
  GTEST_SKIP() << "this C library does not tell";
#endif
  const void* const in_libc = dlsym(RTLD_DEFAULT, "getppid");
  EXPECT_TRUE(is_in_library(in_libc, "libc.so"));
  EXPECT_FALSE(is_in_library(in_libc, "libstdc++.so"));
  EXPECT_FALSE(is_in_library(this, "libc.so"));
  EXPECT_FALSE(is_in_library(nullptr, "libc.so"));
  void* const handle = dlopen("libthread_db.so.1", RTLD_LAZY);
  if (handle == nullptr) GTEST_SKIP() << "no library to load";
  EXPECT_TRUE(is_in_library(dlsym(handle, "td_ta_new"), "libthread_db.so"));
  dlclose(handle);
}

TEST(LoadedLibraries, AProgramHasNoPathInTheLoadersList) {
  ASSERT_NE(path_of_this_library(), nullptr);
  EXPECT_EQ(std::string(path_of_this_library()), "");
}

TEST(LoadedLibraries, ALibraryThatWasLoadedLaterIsNotLookedAt) {
  ASSERT_FALSE(any_library_defines("td_ta_new"));  // the first call records what the process was started with
  void* const handle = dlopen("libthread_db.so.1", RTLD_LAZY);
  if (handle == nullptr) GTEST_SKIP() << "no library to load";
  EXPECT_NE(dlsym(handle, "td_ta_new"), nullptr);
  EXPECT_FALSE(any_library_defines("td_ta_new"));
  dlclose(handle);
}

}  // namespace
}  // namespace wherry
