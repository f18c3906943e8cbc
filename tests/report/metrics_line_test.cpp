// Metrics lines read back exactly as they were written, with an independent JSON reader.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "braid/report/metrics_file.h"

namespace braid::report::metrics_line_test {
namespace {

using Json = nlohmann::ordered_json;

double read_back(double value) {
  const Json json = Json::parse(MetricsLine().add("x", value).text());
  EXPECT_TRUE(json["x"].is_number_float());
  return json["x"].get<double>();
}

TEST(MetricsLine, KeepsTheOrder) {
  MetricsLine line;
  line.add("step", 3).add("loss", 2.5).add("name", "run").add("done", true).add("tokens", uint64_t{1} << 40);
  EXPECT_EQ(line.text(), R"({"step":3,"loss":2.5,"name":"run","done":true,"tokens":1099511627776})");
  EXPECT_EQ(MetricsLine().text(), "{}");
}

TEST(MetricsLine, NamedNumbersAreAnObject) {
  const std::map<std::string, double> named{{"blocks.1.router.balance", 1.25}, {"a \"name\"", -0.0}};
  EXPECT_EQ(MetricsLine().add("losses", named).text(),
            R"({"losses":{"a \"name\"":-0.0,"blocks.1.router.balance":1.25}})");
}

TEST(MetricsLine, DoublesReadBackBitForBit) {
  using Limits = std::numeric_limits<double>;
  for (double value : {0.0, -0.0, 1.0, -5.0, 0.1, 1.0 / 3, 1e22, 1e300, Limits::min(), Limits::denorm_min(),
                       Limits::max(), Limits::epsilon(), 123456789012345678.0}) {
    EXPECT_EQ(std::bit_cast<uint64_t>(read_back(value)), std::bit_cast<uint64_t>(value)) << value;
  }
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(std::bit_cast<uint64_t>(read_back(value)), std::bit_cast<uint64_t>(value)) << value;
  }
}

TEST(MetricsLine, WhatIsNoNumberIsNull) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(MetricsLine().add("a", std::nan("")).add("b", infinity).add("c", -infinity).text(),
            R"({"a":null,"b":null,"c":null})");
}

TEST(MetricsLine, TextIsEscaped) {
  const std::string odd = "a\"b\\c\nd\te\x01\x1f f \u00b5/";
  const std::string line = MetricsLine().add(odd, std::string_view(odd)).text();
  EXPECT_EQ(line.find('\n'), line.npos);
  EXPECT_EQ(Json::parse(line)[odd], odd);
}

TEST(MetricsLine, Lists) {
  MetricsLine line;
  line.add("d", std::vector<double>{1, std::nan("")}).add("i", std::vector<int>{4, 3});
  line.add("s", std::vector<std::string>{"0F0 0B0", "\""}).add("none", std::vector<int>{});
  EXPECT_EQ(line.text(), R"({"d":[1.0,null],"i":[4,3],"s":["0F0 0B0","\""],"none":[]})");
}

}  // namespace
}  // namespace braid::report::metrics_line_test
