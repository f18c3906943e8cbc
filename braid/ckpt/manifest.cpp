// JSON of the manifest. Everything read is checked before it is used.
#include "braid/ckpt/manifest.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/base/path_look.h"
#include "braid/base/sealed_json.h"
#include "braid/base/text.h"

namespace braid {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kFormat = "braid checkpoint";
constexpr int kIndent = 2;
constexpr int64_t kMaxManifestBytes = 1'000'000'000;

std::string without_last_slash(std::string directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return directory;
}

void require(bool holds, const std::string& path, const std::string& rule) {
  if (!holds) throw IoError(path, -1, rule);
}

// One path component of a strict alphabet, so that a manifest cannot name a file elsewhere.
bool is_file_name(const std::string& name) {
  const auto good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= 255 && name[0] != '.' && std::all_of(name.begin(), name.end(), good);
}

ElementType type_of(const std::string& name, const std::string& path) {
  for (const auto type : {ElementType::U8, ElementType::BF16, ElementType::F32, ElementType::F64, ElementType::I64}) {
    if (text(type) == name) return type;
  }
  throw IoError(path, -1, cat("type ", name, " must be one of: U8, BF16, F32, F64, I64"));
}

// A count; a number that is none would be rounded or wrapped into one.
int64_t count_in(const OrderedJson& json, const char* key, const std::string& path) {
  constexpr int64_t kMost = int64_t{1} << 53;
  const OrderedJson& value = json.at(key);
  const bool whole = value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
  require(whole && value.get<uint64_t>() <= kMost, path, cat(key, " must be a whole number from 0 to 2^53"));
  return value.get<int64_t>();
}

Manifest from_json(const OrderedJson& json, const std::string& path) {
  Manifest manifest;
  require(json.at("format") == kFormat, path, cat("format must be \"", kFormat, "\""));
  const auto version = json.at("version").get<int64_t>();
  require(version >= 1 && version <= kManifestVersion, path,
          cat("has format version ", version, "; this braid reads 1 to ", kManifestVersion));
  manifest.info = {count_in(json, "step", path), json.at("config").get<std::string>(),
                   json.at("tokenizer").get<std::string>(), count_in(json, "next_sample", path)};
  if (json.contains("counters")) manifest.info.counters = json["counters"].get<std::map<std::string, double>>();
  if (json.contains("tokenizer_xxh64")) manifest.info.tokenizer_hash = hex_in(json, "tokenizer_xxh64", path);
  for (const auto& mark : json.value("data", OrderedJson::array())) {
    manifest.info.data.push_back({mark.at("name").get<std::string>(), count_in(mark, "documents", path),
                                  count_in(mark, "bytes", path), digest_in(mark, path)});
  }
  for (const auto& [name, file] : json.at("files").items()) {
    require(is_file_name(name), path, cat("file name ", name, " must be letters, digits, '_', '-' and '.'"));
    manifest.files[name] = {count_in(file, "bytes", path), digest_in(file, path)};
  }
  for (const auto& [name, tensor] : json.at("tensors").items()) {
    ManifestTensor entry{tensor.at("file").get<std::string>(), type_of(tensor.at("dtype").get<std::string>(), path),
                         tensor.at("shape").get<std::vector<int64_t>>(), digest_in(tensor, path)};
    require(manifest.files.count(entry.file) == 1, path, cat("tensor ", name, " lies in ", entry.file, ", not listed"));
    manifest.tensors[name] = std::move(entry);
  }
  return manifest;
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  OrderedJson json;
  json["format"] = kFormat;
  json["version"] = kManifestVersion;
  json["step"] = manifest.info.step;
  json["next_sample"] = manifest.info.next_sample;
  json["tokenizer"] = manifest.info.tokenizer;
  if (manifest.info.tokenizer_hash != 0) json["tokenizer_xxh64"] = hex(manifest.info.tokenizer_hash);
  for (const auto& [name, documents, bytes, digest] : manifest.info.data) {
    json["data"].push_back({{"name", name}, {"documents", documents}, {"bytes", bytes}});
    put_digest(json["data"].back(), digest);
  }
  json["config"] = manifest.info.config_toml;
  if (!manifest.info.counters.empty()) json["counters"] = manifest.info.counters;
  json["files"] = OrderedJson::object();
  for (const auto& [name, file] : manifest.files) {
    json["files"][name] = {{"bytes", file.bytes}};
    put_digest(json["files"][name], file.hash);
  }
  json["tensors"] = OrderedJson::object();
  for (const auto& [name, tensor] : manifest.tensors) {
    json["tensors"][name] = {{"file", tensor.file}, {"dtype", text(tensor.type)}, {"shape", tensor.shape}};
    put_digest(json["tensors"][name], tensor.hash);
  }
  return sealed_json(json, kIndent);
}

bool holds_tensors(const std::string& file_name) { return file_name.ends_with(".safetensors"); }

Manifest parse_manifest(const std::string& path, const std::string& text) {
  Manifest manifest;
  read_sealed_json(path, text, [&](const OrderedJson& json) { manifest = from_json(json, path); });
  return manifest;
}

std::string found_directory(const std::string& directory) {
  PosixFileSystem files;
  const std::string place = without_last_slash(directory), aside = aside_name(directory);
  return !files.exists(place) && path_kind(aside + "/manifest.json") != PathKind::Nothing ? aside : place;
}

Manifest read_manifest(const std::string& directory) {
  const CheckedFile file(directory + "/manifest.json");
  return parse_manifest(file.path(), file.content(kMaxManifestBytes));
}

std::string temporary_name(const std::string& directory) { return without_last_slash(directory) + ".tmp"; }
std::string aside_name(const std::string& directory) { return without_last_slash(directory) + ".old"; }

}  // namespace braid
