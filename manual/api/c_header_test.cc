// SPDX-License-Identifier: Apache-2.0
#include "manual/api/c_header.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "manual/api/pages.hpp"

namespace wherry::manual {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kHeader = R"(/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it is for. More
 * of it.
 *
 * Threads: one.
 */
#ifndef GUARD
#include <wherry/handles.h>
#ifdef __cplusplus
extern "C" {
#endif

/* A section ------- */

struct wherry_options {
  size_t bytes; /* how many */
};
/* A number. */
#define WHERRY_NUMBER 1u

/* Opens it, and
 * waits. -EINVAL; a second sentence. */
int wherry_open(const char* name,
                wherry_thing* thing);
/* The same, at once. */
int wherry_try_open(const char* name, wherry_thing* thing);
int wherry_try_openv(const char* const* names, wherry_thing* thing);
void wherry_thing_close(wherry_thing thing);

/* Alone. */
int wherry_alone(void);
#ifdef __cplusplus
}
#endif
#endif
)";

TEST(CHeaderPages, AFunctionBelongsToTheCommentBeforeItAndToItsParagraph) {
  const CHeader header = read_c_header(kHeader);
  EXPECT_EQ(header.purpose, "What it is for. More of it.\nThreads: one.");
  ASSERT_THAT(header.groups, SizeIs(2));
  ASSERT_THAT(header.groups[0], SizeIs(3));
  EXPECT_EQ(header.groups[0][0].text, "Opens it, and waits. -EINVAL; a second sentence.");
  ASSERT_THAT(header.groups[0][0].functions, SizeIs(1));
  EXPECT_EQ(header.groups[0][0].functions[0].declaration, "int wherry_open(const char* name, wherry_thing* thing)");
  ASSERT_THAT(header.groups[0][1].functions, SizeIs(2));
  EXPECT_EQ(header.groups[0][1].functions[1].name, "wherry_try_openv");
  EXPECT_EQ(header.groups[0][2].functions[0].name, "wherry_thing_close");
  ASSERT_THAT(header.groups[1], SizeIs(1));
  EXPECT_EQ(header.groups[1][0].text, "Alone.");
}

TEST(CHeaderPages, EveryFunctionHasAPageAndTheHeaderHasOne) {
  std::vector<std::string> names;
  for (const Page& page : pages_of(read_c_header(kHeader), "wherry_things", "wherry/wherry.h"))
    names.push_back(page.name);
  EXPECT_THAT(names, ElementsAre("wherry_things", "wherry_open", "wherry_try_open", "wherry_try_openv",
                                 "wherry_thing_close", "wherry_alone"));
}

TEST(CHeaderPages, APageHasThePurposeThePrototypesAndTheTexts) {
  const std::vector<Page> pages = pages_of(read_c_header(kHeader), "wherry_things", "wherry/wherry.h");
  EXPECT_THAT(pages[0].text, HasSubstr("wherry_things \\- What it is for\n"));
  EXPECT_THAT(
      pages[1].text,
      HasSubstr("wherry_open, wherry_try_open, wherry_try_openv, wherry_thing_close \\- Opens it, and waits\n"));
  EXPECT_THAT(pages[1].text, HasSubstr("int wherry_open(const char* name, wherry_thing* thing);"));
  EXPECT_THAT(pages[1].text, HasSubstr("\\-EINVAL; a second sentence."));
  EXPECT_THAT(pages[1].text, HasSubstr("Gives the handle back."));
  EXPECT_EQ(pages[2].text, ".so man3/wherry_open.3\n");
}

TEST(CHeaderPages, AFunctionThatNoCommentDescribesIsAnError) {
  const CHeader header = read_c_header("int wherry_open(void);\n");
  EXPECT_THROW(pages_of(header, "wherry_things", "wherry/wherry.h"), std::runtime_error);
}

TEST(CHeaderPages, WhatDoesNotEndIsAnError) {
  EXPECT_THROW(read_c_header("/* no end"), std::runtime_error);
  EXPECT_THROW(read_c_header("int wherry_open(void)"), std::runtime_error);
}

}  // namespace
}  // namespace wherry::manual
