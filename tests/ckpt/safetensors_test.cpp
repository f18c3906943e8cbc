// The format, rule by rule, and against a file that the Python package `safetensors` wrote
// (data/reference.safetensors).
#include "braid/ckpt/safetensors.h"

#include <cstring>
#include <random>

#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"

namespace braid::ckpt::safetensors_test {
namespace {

using Safetensors = ScratchFolder;

const std::string kReference = std::string(BRAID_SOURCE_DIR) + "/tests/ckpt/data/reference.safetensors";

// The tensors saved there: see docs/checkpoint_format.md, "Checked against".
const std::vector<TensorInfo> kTensors = {
    {"weight", ElementType::F32, {2, 3}}, {"bias", ElementType::F64, {3}},
    {"ids", ElementType::I64, {2, 2}},    {"half", ElementType::BF16, {3}},
    {"mask", ElementType::U8, {3}},       {"scalar", ElementType::F32, {}},
    {"empty", ElementType::F32, {0, 4}},  {"name with \"quotes\" and \xC3\xA9", ElementType::F32, {1}}};

template <class Element>
std::vector<Element> values(const std::string& file, const std::string& name) {
  const CheckedFile checked(file);
  const auto header = read_header(checked);
  for (const auto& [info, begin, end] : header.tensors) {
    if (info.name != name) continue;
    std::vector<Element> out(static_cast<size_t>(end - begin) / sizeof(Element));
    checked.read(header.data_begin + begin, std::as_writable_bytes(std::span(out)));
    return out;
  }
  return {};
}

TEST_F(Safetensors, ReadsTheReferenceFile) {
  const auto header = read_header(CheckedFile(kReference));
  EXPECT_EQ(header.metadata, (SafetensorsMetadata{{"format", "pt"}}));
  EXPECT_EQ(header.tensors, laid_out(kTensors));
  EXPECT_EQ(values<float>(kReference, "weight"), (std::vector<float>{0, 0.25, 0.5, 0.75, 1, 1.25}));
  EXPECT_EQ(values<double>(kReference, "bias"), (std::vector<double>{1.5, -2, 0.25}));
  EXPECT_EQ(values<int64_t>(kReference, "ids"), (std::vector<int64_t>{1, -2, 3, int64_t{1} << 40}));
  EXPECT_EQ(values<uint16_t>(kReference, "half"), (std::vector<uint16_t>{0x3F80, 0xBF00, 0x4040}));
  EXPECT_EQ(values<uint8_t>(kReference, "mask"), (std::vector<uint8_t>{0, 1, 255}));
  EXPECT_EQ(values<float>(kReference, "scalar"), (std::vector<float>{7}));
}

TEST_F(Safetensors, WritesTheBytesOfTheReference) {
  const std::string reference = content(kReference);
  const auto header = read_header(CheckedFile(kReference));
  EXPECT_EQ(header_bytes(laid_out(kTensors), header.metadata),
            reference.substr(0, static_cast<size_t>(header.data_begin)));
}

// The file around a header; `claimed` is the length it says the header has.
std::string file_of(const std::string& json, size_t data_bytes, uint64_t claimed) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &claimed, 8);
  return bytes + json + std::string(data_bytes, 'x');
}
std::string file_of(const std::string& json, size_t data_bytes) { return file_of(json, data_bytes, json.size()); }

class SafetensorsRules : public ScratchFolder {
 protected:
  // Returns the reader's message about these bytes, without the path.
  std::string verdict(const std::string& bytes) {
    write(path("t"), bytes);
    try {
      read_header(CheckedFile(path("t")));
    } catch (const IoError& error) {
      return std::string(error.what()).substr(path("t").size() + 2);
    }
    return "good";
  }
  std::string verdict_on(const std::string& tensors, size_t data_bytes) {
    return verdict(file_of(tensors, data_bytes));
  }
};

std::string tensor(const std::string& name, const std::string& shape, const std::string& offsets) {
  return cat("\"", name, R"(":{"dtype":"F32","shape":)", shape, R"(,"data_offsets":)", offsets, "}");
}

TEST_F(SafetensorsRules, GoodOnes) {
  EXPECT_EQ(verdict_on("{}", 0), "good");
  EXPECT_EQ(verdict_on("{}      ", 0), "good");
  EXPECT_EQ(verdict_on("{" + tensor("b", "[2]", "[4,12]") + "," + tensor("a", "[]", "[0,4]") + "}", 12), "good");
  EXPECT_EQ(verdict_on("{" + tensor("a", "[0,9]", "[0,0]") + "," + tensor("b", "[1]", "[0,4]") + "}", 4), "good");
}

TEST_F(SafetensorsRules, Lengths) {
  EXPECT_EQ(verdict("1234567"), "at byte 0: has 7 bytes; a safetensors file has at least 8");
  EXPECT_EQ(verdict(file_of("{}", 0, 3)), "at byte 0: header length 3 does not fit the file of 10 bytes");
  EXPECT_EQ(verdict(file_of("{}", 0, 100'000'001)),
            "at byte 0: header length 100000001 is above the limit of 100000000");
  EXPECT_EQ(verdict(file_of("{}", 0, ~uint64_t{0} - 7)),
            "at byte 0: header length 18446744073709551608 is above the limit of 100000000");
}

TEST_F(SafetensorsRules, Places) {
  const auto two = [&](const std::string& second) { return "{" + tensor("a", "[1]", "[0,4]") + "," + second + "}"; };
  EXPECT_EQ(verdict_on("{" + tensor("a", "[1]", "[4,8]") + "}", 8),
            "at byte 62: hole before tensor a, which begins at 4 while the tensor before it ends at 0");
  EXPECT_NE(verdict_on(two(tensor("b", "[1]", "[2,6]")), 6).find("overlap with tensor b"), std::string::npos);
  EXPECT_NE(verdict_on(two(tensor("b", "[1]", "[0,4]")), 4).find("overlap with tensor b"), std::string::npos);
  EXPECT_NE(verdict_on(two(tensor("b", "[1]", "[8,4]")), 8).find("ends at 4, before its begin 8"), std::string::npos);
  EXPECT_NE(verdict_on("{" + tensor("a", "[3]", "[0,8]") + "}", 8).find("has 8 bytes; its shape and type need 12"),
            std::string::npos);
  EXPECT_NE(verdict_on(two(tensor("b", "[1]", "[4,8]")), 9).find("need 8 bytes after the header; the file has 9"),
            std::string::npos);
  EXPECT_NE(verdict_on(two(tensor("b", "[1]", "[4,8]")), 7).find("need 8 bytes after the header; the file has 7"),
            std::string::npos);
}

// Source of the names and bits: safetensors 0.6, tensor.rs, Dtype.
TEST_F(SafetensorsRules, EveryTypeIsKnownByItsSize) {
  const std::pair<const char*, int64_t> bytes_of_eight[] = {
      {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8},
      {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16}, {"BF16", 16}, {"I32", 32},
      {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},    {"I64", 64}, {"U64", 64}};
  for (const auto& [type, bytes] : bytes_of_eight) {
    const std::string begin = cat(R"({"a":{"dtype":")", type, R"(","shape":[2,4],"data_offsets":[0,)");
    EXPECT_EQ(verdict_on(cat(begin, bytes, "]}}"), bytes), "good") << type;
    EXPECT_NE(verdict_on(cat(begin, bytes + 1, "]}}"), bytes + 1).find(cat("shape and type need ", bytes)),
              std::string::npos)
        << type;
  }
  EXPECT_NE(verdict_on(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1)
                .find("tensor a of type F4 and its shape is no whole number of bytes"),
            std::string::npos);
}

TEST_F(SafetensorsRules, Overflow) {
  for (const char* shape : {"[4611686018427387904,4]", "[4294967296,4294967296]", "[9223372036854775807,0,2]"}) {
    EXPECT_NE(verdict_on("{" + tensor("a", shape, "[0,0]") + "}", 0).find("overflows 63 bits"), std::string::npos)
        << shape;
  }
  EXPECT_NE(verdict_on("{" + tensor("a", "[9223372036854775808]", "[0,0]") + "}", 0).find("overflows 63 bits"),
            std::string::npos);
}

TEST_F(SafetensorsRules, Grammar) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "must begin with {"},
      {" {}", "must begin with {"},
      {"[]", "must begin with {"},
      {"{", "not JSON"},
      {"{}x", "not JSON"},
      {"{\"\xFF\":{}}", "not JSON"},
      {R"({"a":1})", "a number is not allowed here: a tensor must be an object"},
      {R"({"a":{}})", "tensor a has no \"dtype\""},
      {R"({"a":{"dtype":"F32","shape":[]}})", "tensor a has no \"data_offsets\""},
      {R"({"a":{"dtype":"I12"}})",
       "type I12 of tensor a must be one of: BOOL, F4, F6_E2M3, F6_E3M2, U8, I8, F8_E5M2, F8_E4M3, F8_E8M0, I16, U16, "
       "F16, BF16, I32, U32, F32, C64, F64, I64, U64"},
      {R"({"a":{"dtype":32}})", "a number is not allowed here"},
      {R"({"a":{"dtype":["F32"]}})", "an array is not allowed here"},
      {R"({"a":{"shape":[-1]}})", "negative number -1 is not allowed here: a shape holds whole numbers"},
      {R"({"a":{"shape":[1.5]}})", "number 1.5 is not allowed here"},
      {R"({"a":{"shape":[1e400]}})", "header:"},
      {R"({"a":{"shape":[18446744073709551616]}})", "header:"},
      {R"({"a":{"shape":[[1]]}})", "an array is not allowed here"},
      {R"({"a":{"shape":null}})", "null is not allowed here"},
      {R"({"a":{"data_offsets":[0,4,8]}})", "must be [begin, end]"},
      {R"({"a":{"data_offsets":[0]}})", "must be [begin, end]"},
      {R"({"a":{"data_offsets":{}}})", "an object is not allowed here"},
      {R"({"a":{"stride":[1]}})", "unknown key \"stride\" in tensor a"},
      {R"({"a":{"shape":[],"shape":[]}})", "duplicate key \"shape\""},
      {R"({"__metadata__":{"k":"v","k":"w"}})", "duplicate key \"k\""},
      {R"({"__metadata__":{"k":1}})", "a number is not allowed here: metadata must be strings"},
      {R"({"__metadata__":{"k":{}}})", "an object is not allowed here: metadata must be strings"},
      {R"({"__metadata__":{},"__metadata__":{}})", "duplicate key \"__metadata__\""},
  };
  for (const auto& [json, rule] : cases) {
    EXPECT_NE(verdict_on(json, 0).find(rule), std::string::npos) << json << "\n" << verdict_on(json, 0);
  }
  const std::string twice = tensor("a", "[]", "[0,4]");
  EXPECT_EQ(verdict_on("{" + twice + "," + twice + "}", 4), "at byte 64: header: duplicate key \"a\"");
}

TEST_F(SafetensorsRules, ANulEndsNoHeader) {
  using namespace std::string_literals;
  EXPECT_EQ(verdict_on("{}\0garbage"s, 0), "at byte 10: header: not JSON: it has a NUL");
}

TEST_F(SafetensorsRules, DeepNestingIsRefusedAtTheFirstLevelTooDeep) {
  const std::string deep = R"({"a":{"shape":)" + std::string(1'000'000, '[');
  EXPECT_NE(verdict_on(deep, 0).find("an array is not allowed here"), std::string::npos);
}

TEST_F(Safetensors, OnlyRegularFilesAreOpened) {
  EXPECT_THROW(CheckedFile(path("gone")), IoError);
  EXPECT_THROW(CheckedFile file(folder_), IoError);
  EXPECT_THROW(CheckedFile("/dev/zero"), IoError);
  std::filesystem::create_symlink(kReference, path("link"));
  EXPECT_THROW(CheckedFile(path("link")), IoError);
}

// Whatever the header says, the reader answers with a header that keeps the rules, or with IoError.
void parse_or_refuse(const std::string& json, int64_t file_bytes) {
  try {
    int64_t end = 0;
    const auto header = parse_header("fuzz", json, file_bytes);
    for (const auto& [info, begin, stop] : header.tensors) {
      ASSERT_EQ(begin, end);
      ASSERT_GE(stop, begin);
      end = stop;
    }
    ASSERT_EQ(header.data_begin + end, file_bytes);
  } catch (const IoError&) {
  }
}

TEST(SafetensorsFuzz, MutatedHeadersNeverCrash) {
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const std::string good = header_bytes(laid_out(kTensors), {{"format", "pt"}}).substr(8);
  const int64_t file_bytes = 8 + static_cast<int64_t>(good.size()) + 97;
  const std::string pieces[] = {"{",
                                "}",
                                "[",
                                "]",
                                ",",
                                ":",
                                "\"",
                                "-",
                                "18446744073709551615",
                                "9223372036854775807",
                                "\"shape\"",
                                "\"data_offsets\":[0,4]",
                                "\"dtype\":\"F32\"",
                                "null",
                                "1e9",
                                "\\u0000",
                                "\xC3"};
  for (int round = 0; round < 60'000; ++round) {
    std::string json = good;
    for (size_t change = 1 + below(4); change > 0; --change) {
      const size_t at = below(json.size());
      switch (below(5)) {
        case 0:
          json[at] = static_cast<char>(below(256));
          break;
        case 1:
          json.erase(at, 1 + below(12));
          break;
        case 2:
          json.insert(at, pieces[below(std::size(pieces))]);
          break;
        case 3:
          json.insert(at, json.substr(below(json.size()), below(80)));
          break;
        default:
          json[at] = static_cast<char>('0' + below(10));
      }
      if (json.empty()) json = "{";
    }
    parse_or_refuse(json, file_bytes);
  }
}

}  // namespace
}  // namespace braid::ckpt::safetensors_test
