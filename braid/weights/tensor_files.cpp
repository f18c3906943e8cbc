// Reads the index, if there is one, and the headers of the files.
#include "braid/weights/tensor_files.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/json_text.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid::weights {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxIndexBytes = 100'000'000;

// Returns true for one path component of a strict alphabet, so that an index cannot name a file elsewhere.
bool is_weights_name(const std::string& name) {
  const auto good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  };
  return name.size() <= 255 && name.ends_with(".safetensors") && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), good);
}

// Returns the file of each tensor from the index.
std::map<std::string, std::string> read_index(const std::string& path) {
  Json json;
  const JsonFault fault = read_json(file_content(path, kMaxIndexBytes), json);
  std::vector<Problem> problems;
  std::map<std::string, std::string> files;
  if (fault.line > 0) {
    problems.push_back({cat(path, ":", fault.line), "", fault.why, ""});
  } else if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    problems.push_back({path, "", "must hold an object with \"weight_map\", tensors and their files", ""});
  } else {
    for (const auto& [tensor, file] : json["weight_map"].items()) {
      const std::string name = file.is_string() ? file.get<std::string>() : "";
      if (!is_weights_name(name)) {
        problems.push_back({cat(path, ": ", tensor), name,
                            "must be a file of this folder, NAME.safetensors of letters, digits, '_', '-' and '.'",
                            ""});
      }
      files[tensor] = name;
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return files;
}

}  // namespace

bool has_hf_weights(const std::string& folder) {
  return path_kind(cat(folder, "/", kHfWeights)) != PathKind::Nothing ||
         path_kind(cat(folder, "/", kHfIndex)) != PathKind::Nothing;
}

TensorFiles::TensorFiles(const std::string& folder) {
  const std::string single = cat(folder, "/", kHfWeights);
  if (path_kind(single) != PathKind::Nothing || path_kind(cat(folder, "/", kHfIndex)) == PathKind::Nothing) {
    open(single);
  } else {
    open_listed(folder);
  }
}

void TensorFiles::open(const std::string& path) {
  files_.push_back(std::make_unique<CheckedFile>(path, Links::Followed));
  const ckpt::SafetensorsHeader header = ckpt::read_header(*files_.back());
  for (const ckpt::TensorEntry& entry : header.tensors) {
    infos_[entry.info.name] = entry.info;
    places_[entry.info.name] = {files_.back().get(), header.data_begin + entry.begin};
  }
}

void TensorFiles::open_listed(const std::string& folder) {
  const std::string index = cat(folder, "/", kHfIndex);
  const auto listed = read_index(index);
  std::set<std::string> names;
  for (const auto& [tensor, file] : listed) names.insert(file);
  std::map<std::string, std::string> found;
  std::vector<Problem> problems;
  for (const std::string& name : names) {
    const std::string path = cat(folder, "/", name);
    open(path);
    for (const auto& [tensor, place] : places_) {
      if (place.file != files_.back().get()) continue;
      const auto before = found.find(tensor);
      if (before != found.end()) problems.push_back({tensor, name, cat("lies in ", before->second, " too"), ""});
      found[tensor] = name;
    }
  }
  for (const auto& [tensor, file] : listed) {
    const auto at = found.find(tensor);
    if (at == found.end() || at->second != file) {
      problems.push_back(
          {cat(index, ": ", tensor), file, "does not hold the tensor", at == found.end() ? "" : at->second});
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

at::Tensor TensorFiles::rows(const std::string& name, int64_t begin, int64_t end) const {
  const ckpt::TensorInfo& info = infos_.at(name);
  const Place& place = places_.at(name);
  mesh::Index shape = info.shape;
  int64_t row_bytes = ckpt::bytes_per_element(info.type);
  for (size_t d = 1; d < shape.size(); ++d) row_bytes *= shape[d];
  if (!shape.empty()) shape[0] = end - begin;
  const at::Tensor rows = at::empty(shape, ckpt::scalar_type(info.type));
  place.file->read(place.begin + begin * row_bytes, ckpt::bytes_of(rows));
  return rows;
}

}  // namespace braid::weights
