// XXH64 against published values and against itself in pieces.
#include "braid/base/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace braid::digest_test {
namespace {

std::string of(std::string_view text) {
  Digest digest;
  digest.add(std::as_bytes(std::span(text)));
  return hex(digest.value());
}

TEST(Digest, IsXxh64) {
  EXPECT_EQ(of(""), "ef46db3751d8e999");
  EXPECT_EQ(of("a"), "d24ec4f1a98c6e5b");
  EXPECT_EQ(of("abc"), "44bc2cf5ad770999");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(of(all.substr(0, 63)), "e26aa9e2a95f8e4f");
  EXPECT_EQ(of(all), "1facbe8406cd904b");
}

TEST(Digest, DoesNotDependOnHowTheBytesAreCut) {
  std::string text;
  for (int i = 0; i < 200; ++i) text.push_back(static_cast<char>(i * 37));
  for (size_t first = 0; first <= text.size(); ++first) {
    for (const size_t second : {size_t{0}, size_t{1}, size_t{31}, size_t{32}, size_t{33}}) {
      const size_t middle = std::min(text.size(), first + second);
      Digest digest;
      for (const auto& part : {text.substr(0, first), text.substr(first, middle - first), text.substr(middle)}) {
        digest.add(std::as_bytes(std::span(part)));
      }
      ASSERT_EQ(hex(digest.value()), of(text)) << first << " " << second;
    }
  }
}

}  // namespace
}  // namespace braid::digest_test
