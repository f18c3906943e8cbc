// A checkpoint's manifest. As its last member is a digest of the rest, inputs are sealed before they are read: an
// attacker could, and an accident is found by the digest.
#include <nlohmann/json.hpp>

#include "braid/base/digest.h"
#include "braid/base/text.h"
#include "braid/ckpt/manifest.h"
#include "tests/fuzz/target.h"

namespace braid::fuzz {

using namespace ckpt;

namespace {

// Returns the text before the seal.
std::string unsealed(const std::string& text) { return text.substr(0, text.rfind(",\n")); }

void run_manifest(const std::string& input) {
  const std::string seal = cat(",\n  \"xxh3\": \"", hex(digest_of(DigestKind::Xxh3, input)), "\"\n}\n");
  const Manifest manifest = parse_manifest("manifest.json", input + seal);
  parse_manifest("manifest.json", manifest_text(manifest));  // what is read can be written, and read again
}

std::vector<std::string> manifest_seeds() {
  Manifest empty;
  Manifest full;
  full.info = {800, "[model]\nlayers = 2\n", "bytes", 6400, {{"loss_scale", 65536}}, {{"text", 3, 100, {7}}}, 9};
  full.files["model.safetensors"] = {4096, kBlockBytes, {{7}}};
  full.tensors["wte.weight"] = {
      ElementType::F32,
      {4, 8},
      {{"model.safetensors", {{0, 0}, {2, 8}}, {1}}, {"model.safetensors", {{2, 0}, {4, 8}}, {2}}}};
  return {unsealed(manifest_text(empty)), unsealed(manifest_text(full))};
}

}  // namespace

Target manifest_target() {
  return {"manifest",
          run_manifest,
          manifest_seeds,
          {"\"format\": \"braid checkpoint\"",
           "\"version\": 1",
           "\"version\": 3",
           "\"version\": 4",
           "\"files\": {",
           "\"tensors\": {",
           "\"dtype\": \"F32\"",
           "\"shape\": [",
           "\"xxh3\": \"0000000000000000\"",
           "\"xxh64\": \"0000000000000000\"",
           "\"begin\": [",
           "\"end\": [",
           "\"boxes\": [",
           "\"blocks\": [",
           "\"file\": \"",
           "..",
           "/",
           "\\u0000",
           "-1",
           "1e308",
           "null",
           "{",
           "}",
           "[",
           "]",
           ","}};
}

}  // namespace braid::fuzz
