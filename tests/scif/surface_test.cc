// SPDX-License-Identifier: Apache-2.0
// The interface as compilers and linkers see it.
#include <dlfcn.h>

#include <array>

#include "tests/scif/common.hpp"

namespace wherry::scif_test {
namespace {

TEST(ScifSurface, EveryFunctionHasTheVersionOfTheInterface) {
  void* library = ::dlopen("libscif.so.0", RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  constexpr std::array kNames{
      "scif_open",       "scif_close",      "scif_bind",         "scif_listen",     "scif_connect", "scif_accept",
      "scif_send",       "scif_recv",       "scif_register",     "scif_unregister", "scif_mmap",    "scif_munmap",
      "scif_readfrom",   "scif_writeto",    "scif_vreadfrom",    "scif_vwriteto",   "scif_poll",    "scif_get_fd",
      "scif_fence_mark", "scif_fence_wait", "scif_fence_signal", "scif_get_nodeIDs"};
  static_assert(kNames.size() == 22);
  for (const char* name : kNames) EXPECT_NE(::dlvsym(library, name, "SCIF_0.0"), nullptr) << name;
  EXPECT_EQ(::dlsym(library, "_ZN6wherry4scif4findEi"), nullptr) << "nothing else is visible";
  ::dlclose(library);
}

TEST(ScifSurface, TypesAndConstantsAreThoseOfTheInterface) {
  static_assert(sizeof(scif_portID) == 4 && sizeof(scif_pollepd) == sizeof(pollfd));
  static_assert(SCIF_ACCEPT_SYNC == 1 && SCIF_SEND_BLOCK == 1 && SCIF_RECV_BLOCK == 1);
  static_assert(SCIF_PROT_READ == PROT_READ && SCIF_PROT_WRITE == PROT_WRITE && SCIF_MAP_FIXED == MAP_FIXED);
  static_assert(SCIF_RMA_USECPU == 1 && SCIF_RMA_USECACHE == 2 && SCIF_RMA_SYNC == 4 && SCIF_RMA_ORDERED == 8);
  static_assert(SCIF_FENCE_INIT_SELF == 1 && SCIF_FENCE_INIT_PEER == 2);
  static_assert(SCIF_SIGNAL_LOCAL == 0x10 && SCIF_SIGNAL_REMOTE == 0x20);
  EXPECT_EQ(SCIF_OPEN_FAILED, -1);
  EXPECT_EQ(SCIF_MMAP_FAILED, MAP_FAILED);
}

}  // namespace
}  // namespace wherry::scif_test
