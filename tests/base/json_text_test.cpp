// Messages about text that is not JSON, and about JSON that was changed behind its seal.
#include "braid/base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "braid/base/errors.h"
#include "braid/base/sealed_json.h"
#include "braid/base/text.h"

namespace braid::json_text_test {
namespace {

std::string said(const std::string& text) {
  nlohmann::json tree;
  const JsonFault fault = read_json(text, tree);
  return cat(fault.line, " ", fault.why);
}

TEST(JsonText, NamesTheLineAndWhatStandsThere) {
  EXPECT_EQ(said("{\"a\": [1, 2]}"), "0 ");
  EXPECT_EQ(said(""), "1 is not JSON: it is empty");
  EXPECT_EQ(said("\n \n"), "3 is not JSON: it is empty");
  EXPECT_EQ(said("{\"a\": 1,\n\n \"b\": tru}"), "3 is not JSON: invalid literal");
  EXPECT_EQ(said("[1,\n2"), "2 is not JSON: unexpected end of input; expected ']'");
  EXPECT_EQ(said("{\"a\": \"x\ny\"}"),
            "1 is not JSON: invalid string: control character U+000A (LF) must be escaped to \\u000A or \\n");
  EXPECT_EQ(said("{} {}"), "1 is not JSON: unexpected '{'; expected end of input");
}

std::string said_in_order(const std::string& text) {
  nlohmann::ordered_json tree;
  const JsonFault fault = read_json(text, tree);
  return cat(fault.line, " ", fault.why);
}

TEST(JsonText, RefusesAKeyThatStandsTwice) {
  for (const auto& said_of : {said, said_in_order}) {
    EXPECT_EQ(said_of("{\"a\": 1,\n \"b\": {\"a\": 2},\n \"\\u0061\": 3}"), "3 has the key \"a\" twice in one object");
    EXPECT_EQ(said_of("[{\"a\": [{\"x\": 1}, {\"x\": 2}]}, {\"a\": {}}]"), "0 ");
    EXPECT_EQ(said_of("{\"a\": 1, \"a\":\n1, \"a\": 1}"),
              "1 has the key \"a\" twice in one object, and 1 more such keys");
    EXPECT_EQ(said_of("{\"a\": 1, \"a\": tru}"), "1 is not JSON: invalid literal");
  }
}

// The library takes a NUL for the end of its input.
TEST(JsonText, RefusesNulAndWhatFollowsTheJson) {
  using namespace std::string_literals;
  for (const auto& said_of : {said, said_in_order}) {
    EXPECT_EQ(said_of("{\"a\": 1}\0{\"a\": 2}"s), "1 is not JSON: it has a NUL");
    EXPECT_EQ(said_of("{}\n\n\0"s), "3 is not JSON: it has a NUL");
    EXPECT_EQ(said_of("\0"s), "1 is not JSON: it has a NUL");
    EXPECT_EQ(said_of("[\"a\0b\"]"s), "1 is not JSON: it has a NUL");
    EXPECT_EQ(said_of("[\"a\\u0000b\"]"), "0 ");
    EXPECT_EQ(said_of("[1]\n]"), "2 is not JSON: unexpected ']'; expected end of input");
    EXPECT_NE(said_of("[\"\xC3(\"]"), "0 ");
    EXPECT_NE(said_of("[\"\x01\"]"), "0 ");
  }
}

TEST(JsonText, BuildsTheLibrarysTree) {
  const std::string text =
      "{\"b\": [1, -2, 3.5, 18446744073709551615, true, null, [], {}, [[\"x\"]]], \"a\": {\"c\": \"\\u00e9\", \"\": "
      "{\"d\": 0}}}";
  nlohmann::json tree;
  nlohmann::ordered_json in_order;
  ASSERT_EQ(read_json(text, tree).line, 0);
  ASSERT_EQ(read_json(text, in_order).line, 0);
  EXPECT_EQ(tree, nlohmann::json::parse(text));
  EXPECT_EQ(in_order.dump(), nlohmann::ordered_json::parse(text).dump());
  ASSERT_EQ(read_json(" -7 ", tree).line, 0);
  EXPECT_EQ(tree, -7);
}

TEST(JsonText, RefusesWhatIsTooDeepToBeCopied) {
  const auto nested = [](int depth) { return std::string(depth, '[') + "\"]\\\"[\"" + std::string(depth, ']'); };
  EXPECT_EQ(said("\n" + nested(1000)), "0 ");
  EXPECT_EQ(said("\n" + nested(1001)), "2 has more than 1000 lists and objects in one another");
  EXPECT_EQ(said(std::string(1001, '[') + "no JSON"), "1 has more than 1000 lists and objects in one another")
      << "what follows is not parsed";
  std::string many = "[0";
  for (int i = 0; i < 3000; ++i) many += ",[]";
  EXPECT_EQ(said(many + "]"), "0 ");
}

// The library repeats all that it read of the token at fault.
TEST(JsonText, DoesNotRepeatTheFile) {
  EXPECT_LT(said("\"" + std::string(1 << 20, 'a')).size(), 100u);
  EXPECT_EQ(said("{\"a\": 1e999}").find("json.exception"), std::string::npos);
}

TEST(SealedJson, ComesBackAndNoChangeDoes) {
  const std::string text = sealed_json({{"step", 3}, {"name", "a"}}, 2);
  int64_t step = 0;
  read_sealed_json("m", text, [&](const auto& json) { step = json.at("step").template get<int64_t>(); });
  EXPECT_EQ(step, 3);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string bad = text;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_THROW(read_sealed_json("m", bad, [](const auto&) {}), IoError) << i;
    EXPECT_THROW(read_sealed_json("m", text.substr(0, i), [](const auto&) {}), IoError) << i;
  }
}

TEST(SealedJson, SaysInWordsWhatIsMissing) {
  const auto said_of = [](const std::string& key) -> std::string {
    try {
      read_sealed_json("m", sealed_json({{"step", "3"}, {"xxh64", "12"}}, 1), [&](const auto& json) {
        key == "digest" ? void(digest_in(json, "m")) : void(json.at(key).template get<int64_t>());
      });
    } catch (const IoError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(said_of("step"), "m: type must be number, but is string");
  EXPECT_EQ(said_of("stop"), "m: key 'stop' not found");
  EXPECT_EQ(said_of("digest"), "m: xxh64 12 must be sixteen digits");
}

}  // namespace
}  // namespace braid::json_text_test
