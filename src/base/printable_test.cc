// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace wherry {
namespace {

TEST(Printable, ControlCharactersDoNotReachATerminal) {
  EXPECT_EQ(printable("a\x1b[2Jb\n"), "a\\x1b[2Jb\\x0a");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
  // CSI, OSC and NEL as single characters, of UTF-8 and of 8-bit terminals.
  EXPECT_EQ(printable("\u009b31m"), "\\xc2\\x9b31m");
  EXPECT_EQ(printable("\u0085\u009d\u0080"), "\\xc2\\x85\\xc2\\x9d\\xc2\\x80");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");
}

TEST(Printable, WhatIsUtf8StaysAsItIs) {
  for (const char* text : {"\u00a0", "\u00fcml\u00e4ut", "\u07ff\u0800\uffff", "\U00010000\U0010ffff", "\u5b57"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WhatIsNoUtf8IsShownByteByByte) {
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // two bytes for what needs one
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");  // three for U+009B
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");  // cut short
  EXPECT_EQ(printable("\xc3(\xc3\xa4"), "\\xc3(\u00e4");
}

}  // namespace
}  // namespace wherry
