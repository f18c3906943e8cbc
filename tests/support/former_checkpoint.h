// A checkpoint as older versions wrote it, made of a new one whose tensors each lie whole in one file.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "braid/base/digest.h"
#include "braid/base/sealed_json.h"
#include "braid/ckpt/manifest.h"

namespace braid {

// Rewrites the manifest in `folder`: a digest for each file, no boxes. `version` is 1 or 3.
inline void make_former(const std::string& folder, int version) {
  auto json = nlohmann::ordered_json::parse(ckpt::manifest_text(ckpt::read_manifest(folder)));
  json["version"] = version;
  json.erase("xxh3");
  for (auto& [name, file] : json["files"].items()) {
    std::ifstream stream(folder + "/" + name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    file = {{"bytes", bytes.size()}, {"xxh3", hex(digest_of(DigestKind::Xxh3, bytes))}};
  }
  for (auto& [name, tensor] : json["tensors"].items()) {
    EXPECT_EQ(tensor["boxes"].size(), 1u) << name;
    const auto box = tensor["boxes"][0];
    tensor = {{"file", box["file"]}, {"dtype", tensor["dtype"]}, {"shape", tensor["shape"]}, {"xxh3", box["xxh3"]}};
  }
  std::ofstream(folder + "/manifest.json", std::ios::binary) << sealed_json(json, 2);
}

}  // namespace braid
