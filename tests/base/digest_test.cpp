// Against published values and against itself in pieces.
#include "braid/base/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace braid::digest_test {
namespace {

std::string of(std::string_view text, DigestKind kind = DigestKind::Xxh64) {
  Digest digest(kind);
  digest.add(std::as_bytes(std::span(text)));
  EXPECT_EQ(digest.value(), digest_of(kind, text));
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

TEST(Digest, IsXxh3) {
  EXPECT_EQ(of("", DigestKind::Xxh3), "2d06800538d394c2");
  EXPECT_EQ(of("a", DigestKind::Xxh3), "e6c632b61e964e1f");
  EXPECT_EQ(of("abc", DigestKind::Xxh3), "78af5f94892f3950");
}

TEST(Digest, SaysHowItWasMade) {
  for (const auto kind : {DigestKind::Xxh64, DigestKind::Xxh3}) EXPECT_EQ(digest_kind(text(kind)), kind);
  EXPECT_EQ(digest_kind("xxh32"), std::nullopt);
  EXPECT_EQ(digest_kind(""), std::nullopt);
  EXPECT_EQ(text(NamedDigest{255, DigestKind::Xxh64}), "xxh64 00000000000000ff");
  EXPECT_NE((NamedDigest{1, DigestKind::Xxh64}), (NamedDigest{1, DigestKind::Xxh3}));
}

TEST(Digest, DoesNotDependOnHowTheBytesAreCut) {
  std::string text;
  for (int i = 0; i < 600; ++i) text.push_back(static_cast<char>(i * 37));
  for (const auto kind : {DigestKind::Xxh64, DigestKind::Xxh3}) {
    for (size_t first = 0; first <= text.size(); ++first) {
      for (const size_t second : {size_t{0}, size_t{1}, size_t{31}, size_t{32}, size_t{33}}) {
        const size_t middle = std::min(text.size(), first + second);
        Digest digest(kind);
        for (const auto& part : {text.substr(0, first), text.substr(first, middle - first), text.substr(middle)}) {
          digest.add(std::as_bytes(std::span(part)));
        }
        ASSERT_EQ(hex(digest.value()), of(text, kind)) << first << " " << second;
      }
    }
  }
}

}  // namespace
}  // namespace braid::digest_test
