// The manifest's text, and what a manifest may not say.
#include "braid/ckpt/manifest.h"

#include <gtest/gtest.h>

#include "braid/base/digest.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::ckpt::manifest_test {
namespace {

Manifest small() {
  Manifest manifest;
  manifest.info = {8, "[train]\nsteps = 10\n", "bytes", 64};
  manifest.files["model.safetensors"] = {120, kBlockBytes, {{0x0123456789ABCDEF}}};
  const mesh::Box whole{{0, 0}, {3, 4}};
  manifest.tensors["wte.weight"] = {ElementType::F32, {3, 4}, {{"model.safetensors", whole, {0xFFFFFFFFFFFFFFFF}}}};
  return manifest;
}

// The same as version 3 wrote it.
constexpr const char* kThird = R"({
  "format": "braid checkpoint",
  "version": 3,
  "step": 8,
  "next_sample": 64,
  "tokenizer": "bytes",
  "config": "[train]\nsteps = 10\n",
  "files": {
    "model.safetensors": {
      "bytes": 120,
      "xxh3": "0123456789abcdef"
    }
  },
  "tensors": {
    "wte.weight": {
      "file": "model.safetensors",
      "dtype": "F32",
      "shape": [
        3,
        4
      ],
      "xxh3": "ffffffffffffffff"
    }
  },
  "xxh3": "0000000000000000"
}
)";

// `text` with its last member made right again, of that kind.
std::string resealed(const std::string& text, DigestKind kind = DigestKind::Xxh3) {
  const std::string body = text.substr(0, text.rfind(",\n  \"xxh3\""));
  return cat(body, ",\n  \"", braid::text(kind), "\": \"", hex(digest_of(kind, body)), "\"\n}\n");
}

std::string error_with(const std::string& from, const std::string& to) {
  auto text = manifest_text(small());
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    parse_manifest("m", resealed(text));
  } catch (const IoError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Manifest, Picture) {
  EXPECT_EQ(manifest_text(small()), R"({
  "format": "braid checkpoint",
  "version": 4,
  "step": 8,
  "next_sample": 64,
  "tokenizer": "bytes",
  "config": "[train]\nsteps = 10\n",
  "files": {
    "model.safetensors": {
      "bytes": 120,
      "block_bytes": 4194304,
      "xxh3": [
        "0123456789abcdef"
      ]
    }
  },
  "tensors": {
    "wte.weight": {
      "dtype": "F32",
      "shape": [
        3,
        4
      ],
      "boxes": [
        {
          "file": "model.safetensors",
          "begin": [
            0,
            0
          ],
          "end": [
            3,
            4
          ],
          "xxh3": "ffffffffffffffff"
        }
      ]
    }
  },
  "xxh3": ")" + manifest_text(small()).substr(manifest_text(small()).size() - 20));
}

TEST(Manifest, ComesBack) {
  const auto manifest = small();
  const auto again = parse_manifest("m", manifest_text(manifest));
  EXPECT_EQ(again.files, manifest.files);
  EXPECT_EQ(again.tensors, manifest.tensors);
  EXPECT_EQ(again.info.config_toml, manifest.info.config_toml);
  EXPECT_EQ(manifest_text(again), manifest_text(manifest));
}

TEST(Manifest, CountersComeBack) {
  Manifest manifest = small();
  manifest.info.counters = {{"loss_scale", 32768}, {"share", 0.1}};
  EXPECT_EQ(parse_manifest("m", manifest_text(manifest)).info.counters, manifest.info.counters);
  manifest.info.optimizer = "adamw";
  EXPECT_EQ(parse_manifest("m", manifest_text(manifest)).info.optimizer, "adamw");
}

TEST(Manifest, DataAndTokenizerComeBack) {
  Manifest manifest = small();
  manifest.info.data = {{"text", 8, 14080, {0xABC, DigestKind::Xxh64}}, {"source0-train-00000.tokens", 1, 4096, 0}};
  manifest.info.tokenizer_hash = 0x0123;
  const auto text = manifest_text(manifest);
  EXPECT_NE(text.find("\"tokenizer_xxh64\": \"0000000000000123\""), std::string::npos) << text;
  const auto again = parse_manifest("m", text);
  EXPECT_EQ(again.info.data, manifest.info.data);
  EXPECT_EQ(again.info.tokenizer_hash, manifest.info.tokenizer_hash);
}

TEST(Manifest, TheThirdFormatHasWholeTensorsAndADigestForEachFile) {
  const auto manifest = parse_manifest("m", resealed(kThird));
  EXPECT_EQ(manifest.tensors, small().tensors);
  EXPECT_EQ(manifest.files.at("model.safetensors"), (ManifestFile{120, 120, {{0x0123456789ABCDEF}}}));
  EXPECT_EQ(manifest.info.config_toml, small().info.config_toml);
}

TEST(Manifest, TheFirstFormatIsReadAndKnowsNeither) {
  std::string text = kThird;
  text.replace(text.find("\"version\": 3"), 12, "\"version\": 1");
  const auto info = parse_manifest("m", resealed(text)).info;
  EXPECT_EQ(info.tokenizer, "bytes");
  EXPECT_TRUE(info.data.empty());
  EXPECT_EQ(info.tokenizer_hash, 0u);
}

TEST(Manifest, TheSecondFormatNamesItsOwnHashes) {
  std::string text = kThird;
  text.replace(text.find("\"version\": 3"), 12, "\"version\": 2");
  for (const char* digits : {"0123456789abcdef", "ffffffffffffffff"}) {
    text.replace(text.find(cat("\"xxh3\": \"", digits)), 7, "\"xxh64\":");
  }
  const auto again = parse_manifest("m", resealed(text, DigestKind::Xxh64));
  EXPECT_EQ(again.files.at("model.safetensors").blocks[0], (NamedDigest{0x0123456789ABCDEF, DigestKind::Xxh64}));
  EXPECT_EQ(again.tensors.at("wte.weight").boxes[0].hash, (NamedDigest{0xFFFFFFFFFFFFFFFF, DigestKind::Xxh64}));
  auto damaged = resealed(text, DigestKind::Xxh64);
  damaged[damaged.find("wte")] = 'x';
  EXPECT_THROW(parse_manifest("m", damaged), IoError);
}

TEST(Manifest, PartsOfSeveralRanksAreOne) {
  ManifestParts first = small(), second;
  first.tensors["wte.weight"].boxes[0].box.end[0] = 1;
  second.files["model-2.safetensors"] = {0, kBlockBytes, {}};
  second.tensors["wte.weight"] = {ElementType::F32, {3, 4}, {{"model-2.safetensors", {{1, 0}, {3, 4}}, {7}}}};
  Manifest both;
  for (const auto* parts : {&first, &second}) both.add(unpacked_parts(packed(*parts)));
  EXPECT_EQ(both.files.size(), 2u);
  EXPECT_EQ(both.tensors.at("wte.weight").boxes.size(), 2u);
  EXPECT_EQ(parse_manifest("m", manifest_text(both)).tensors, both.tensors);
  both.tensors["wte.weight"].boxes.pop_back();
  EXPECT_THROW(parse_manifest("m", manifest_text(both)), IoError);
}

TEST(Manifest, BoxesHaveNamesInTheirFiles) {
  EXPECT_EQ(stored_name("w", {3, 4}, {{0, 0}, {3, 4}}), "w");
  EXPECT_EQ(stored_name("w", {3, 4}, {{1, 0}, {3, 4}}), "w[1:3,0:4]");
  EXPECT_EQ(stored_name("w", {}, {}), "w");
}

TEST(Manifest, WhatItMayNotSay) {
  EXPECT_EQ(error_with("\"version\": 4", "\"version\": 5"), "m: has format version 5; this braid reads 1 to 4");
  EXPECT_EQ(error_with("braid checkpoint", "other"), "m: format must be \"braid checkpoint\"");
  for (const char* step : {"\"8\"", "-2", "1e300", "8.0", "18446744073709551615"}) {
    EXPECT_EQ(error_with("\"step\": 8", cat("\"step\": ", step)), "m: step must be a whole number from 0 to 2^53")
        << step;
  }
  EXPECT_EQ(error_with("\"step\": 8,", ""), "m: key 'step' not found");
  EXPECT_NE(error_with("\"F32\"", "\"I32\"").find("type I32 must be one of"), std::string::npos);
  EXPECT_NE(error_with("ffffffffffffffff", "fffffffffffffffg").find("must be sixteen digits"), std::string::npos);
  EXPECT_NE(error_with("\"file\": \"model", "\"file\": \"other").find("lies in other.safetensors, not listed"),
            std::string::npos);
  EXPECT_NE(error_with("\"bytes\": 120", "\"bytes\": 12000000").find("lists 1 digest for 3 blocks"), std::string::npos);
  EXPECT_NE(error_with("\"block_bytes\": 4194304", "\"block_bytes\": 0").find("block_bytes must be positive"),
            std::string::npos);
  EXPECT_NE(error_with("            3,\n            4", "            2,\n            4")
                .find("boxes of tensor wte.weight must"),
            std::string::npos);
  for (const char* name : {"../model.safetensors", "/etc/passwd", ".hidden", "", "a b"}) {
    EXPECT_NE(error_with("\"model.safetensors\": {", cat("\"", name, "\": {")).find("file name"), std::string::npos)
        << name;
  }
  EXPECT_EQ(error_with("{\n", "{{\n"), "m:1: is not JSON: unexpected '{'; expected string literal");
}

// The cost is linear in the files, which nothing here asserts: a writer that looks each name up takes twenty seconds.
TEST(Manifest, ManyFilesComeBack) {
  Manifest manifest = small();
  for (int i = 0; i < 60'000; ++i) {
    manifest.files[cat("file-", i, ".json")] = {1, kBlockBytes, {{static_cast<uint64_t>(i)}}};
  }
  EXPECT_EQ(parse_manifest("m", manifest_text(manifest)).files, manifest.files);
}

TEST(Manifest, NamesBesideTheDirectory) {
  EXPECT_EQ(temporary_name("runs/step-8/"), "runs/step-8.tmp");
  EXPECT_EQ(aside_name("runs/step-8"), "runs/step-8.old");
}

}  // namespace
}  // namespace braid::ckpt::manifest_test
