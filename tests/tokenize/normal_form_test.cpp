// Text in the normal form C.
#include "braid/tokenize/normal_form.h"

#include <gtest/gtest.h>

#include "tests/tokenize/bpe_golden.h"

namespace braid::tokenize::normal_form_test {
namespace {

TEST(NormalFormC, IsTheReferences) {
  const auto texts = hard_texts();
  size_t changed = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto expected = bpe_golden().at("nfc").at(i).get<std::string>();
    EXPECT_EQ(normal_form_c(texts[i]), expected) << texts[i];
    EXPECT_EQ(normal_form_c(expected), expected);
    if (surely_normal_form_c(texts[i])) {
      EXPECT_EQ(expected, texts[i]);
    }
    changed += expected != texts[i];
  }
  EXPECT_GT(changed, 2u);
}

TEST(NormalFormC, ComposesOrdersAndLeavesAlone) {
  EXPECT_EQ(normal_form_c("e\u0301"), "\u00e9");
  EXPECT_EQ(normal_form_c("\u212b"), "\u00c5");                      // a singleton
  EXPECT_EQ(normal_form_c("\u0958"), "\u0915\u093c");                // excluded from composition
  EXPECT_EQ(normal_form_c("a\u0301\u0323"), "\u1ea1\u0301");         // in order, then composed
  EXPECT_EQ(normal_form_c("\u1100\u1161\u11a8"), "\uac01");          // Hangul
  EXPECT_EQ(normal_form_c("\u0301e"), "\u0301e");                    // a mark with nothing before it
  EXPECT_EQ(normal_form_c("e\xFF\u0301 \xC3"), "e\xFF\u0301 \xC3");  // bytes that are not UTF-8 join nothing
  EXPECT_EQ(normal_form_c(not_utf8()), not_utf8());
  EXPECT_EQ(normal_form_c(""), "");
  EXPECT_TRUE(surely_normal_form_c("plain, \u00e9 and \u6f22"));
  EXPECT_FALSE(surely_normal_form_c("e\u0301"));
}

}  // namespace
}  // namespace braid::tokenize::normal_form_test
