// The manifest as JSON. Everything read is checked before it is used.
#include "braid/ckpt/manifest.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/base/json_text.h"
#include "braid/base/path_look.h"
#include "braid/base/sealed_json.h"
#include "braid/base/text.h"
#include "braid/ckpt/box_runs.h"

namespace braid::ckpt {
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

// Returns true for one path component of a strict alphabet: a manifest cannot name a file elsewhere.
bool is_file_name(const std::string& name) {
  const auto good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= 255 && name[0] != '.' && std::all_of(name.begin(), name.end(), good);
}

ElementType type_of(const std::string& name, const std::string& path) {
  using enum ElementType;
  for (const ElementType type : {U8, F16, BF16, F32, F64, I64}) {
    if (text(type) == name) return type;
  }
  throw IoError(path, -1, cat("type ", name, " must be one of: U8, F16, BF16, F32, F64, I64"));
}

// Returns a count. Refuses all other numbers, since a conversion would round or wrap them.
int64_t count_in(const OrderedJson& json, const char* key, const std::string& path) {
  constexpr int64_t kMost = int64_t{1} << 53;
  const OrderedJson& value = json.at(key);
  const bool whole = value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
  require(whole && value.get<uint64_t>() <= kMost, path, cat(key, " must be a whole number from 0 to 2^53"));
  return value.get<int64_t>();
}

NamedDigest digest_from(DigestKind kind, const OrderedJson& digits, const std::string& path) {
  OrderedJson member;
  member[braid::text(kind)] = digits;
  return digest_in(member, path);
}

// Up to version 3 a file has one digest, named by its kind. Later versions have a list of digests under that name.
ManifestFile file_from(const OrderedJson& json, const std::string& path) {
  ManifestFile file{count_in(json, "bytes", path), kBlockBytes, {}};
  if (!json.contains("block_bytes")) return {file.bytes, std::max<int64_t>(1, file.bytes), {digest_in(json, path)}};
  file.block_bytes = count_in(json, "block_bytes", path);
  require(file.block_bytes > 0, path, "block_bytes must be positive");
  const DigestKind kind = DigestKind::Xxh3;
  for (const auto& digits : json.at(braid::text(kind))) file.blocks.push_back(digest_from(kind, digits, path));
  const int64_t blocks = file.bytes / file.block_bytes + (file.bytes % file.block_bytes == 0 ? 0 : 1);
  require(std::ssize(file.blocks) == blocks, path,
          cat("lists ", counted(file.blocks.size(), "digest"), " for ", counted(blocks, "block")));
  return file;
}

// Up to version 3 a tensor is stored whole in one file.
ManifestTensor tensor_from(const OrderedJson& json, const std::string& path) {
  ManifestTensor tensor{type_of(json.at("dtype").get<std::string>(), path), json.at("shape").get<mesh::Index>(), {}};
  const auto add = [&](const OrderedJson& box, mesh::Box place) {
    tensor.boxes.push_back({box.at("file").get<std::string>(), std::move(place), digest_in(box, path)});
  };
  if (!json.contains("boxes")) {
    add(json, {mesh::Index(tensor.shape.size(), 0), tensor.shape});
    return tensor;
  }
  for (const auto& box : json.at("boxes"))
    add(box, {box.at("begin").get<mesh::Index>(), box.at("end").get<mesh::Index>()});
  return tensor;
}

void require_covered(const ManifestParts& parts, const std::string& path) {
  for (const auto& [name, tensor] : parts.tensors) {
    std::vector<const mesh::Box*> boxes;
    for (const ManifestBox& box : tensor.boxes) boxes.push_back(&box.box);
    require(!boxes.empty() && cover_once(boxes, tensor.shape), path,
            cat("the boxes of tensor ", name, " must cover each of its elements once"));
  }
}

ManifestParts parts_from(const OrderedJson& json, const std::string& path) {
  ManifestParts parts;
  for (const auto& [name, file] : json.at("files").items()) {
    require(is_file_name(name), path, cat("file name ", name, " must be letters, digits, '_', '-' and '.'"));
    parts.files[name] = file_from(file, path);
  }
  for (const auto& [name, tensor] : json.at("tensors").items()) {
    ManifestTensor entry = tensor_from(tensor, path);
    for (const ManifestBox& box : entry.boxes) {
      require(parts.files.contains(box.file), path, cat("tensor ", name, " lies in ", box.file, ", not listed"));
    }
    parts.tensors[name] = std::move(entry);
  }
  return parts;
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
  manifest.info.optimizer = json.value("optimizer", "");
  if (json.contains("tokenizer_xxh64")) manifest.info.tokenizer_hash = hex_in(json, "tokenizer_xxh64", path);
  for (const auto& mark : json.value("data", OrderedJson::array())) {
    manifest.info.data.push_back({mark.at("name").get<std::string>(), count_in(mark, "documents", path),
                                  count_in(mark, "bytes", path), digest_in(mark, path)});
  }
  manifest.version = version;
  static_cast<ManifestParts&>(manifest) = parts_from(json, path);
  require_covered(manifest, path);
  return manifest;
}

// Appends a member `name` to an object and returns it. operator[] would compare the name with those of all members.
OrderedJson& appended(OrderedJson& object, const std::string& name) {
  return object.get_ref<OrderedJson::object_t&>().emplace_back(name, OrderedJson()).second;
}

void put_parts(OrderedJson& json, const ManifestParts& parts) {
  OrderedJson& files = json["files"] = OrderedJson::object();
  for (const auto& [name, file] : parts.files) {
    OrderedJson& entry = appended(files, name) = {{"bytes", file.bytes}, {"block_bytes", file.block_bytes}};
    entry[braid::text(DigestKind::Xxh3)] = OrderedJson::array();
    for (const NamedDigest& block : file.blocks) entry[braid::text(block.kind)].push_back(hex(block.value));
  }
  OrderedJson& tensors = json["tensors"] = OrderedJson::object();
  for (const auto& [name, tensor] : parts.tensors) {
    OrderedJson& entry = appended(tensors, name) = {{"dtype", text(tensor.type)}, {"shape", tensor.shape}};
    for (const auto& [file, box, hash] : tensor.boxes) {
      entry["boxes"].push_back({{"file", file}, {"begin", box.begin}, {"end", box.end}});
      put_digest(entry["boxes"].back(), hash);
    }
  }
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
  if (!manifest.info.optimizer.empty()) json["optimizer"] = manifest.info.optimizer;
  put_parts(json, manifest);
  return sealed_json(json, kIndent);
}

void ManifestParts::add(ManifestParts other) {
  files.merge(std::move(other.files));
  for (auto& [name, tensor] : other.tensors) {
    const auto [known, is_new] = tensors.try_emplace(name, std::move(tensor));
    if (is_new) continue;
    for (ManifestBox& box : tensor.boxes) known->second.boxes.push_back(std::move(box));
  }
}

std::string packed(const ManifestParts& parts) {
  OrderedJson json;
  put_parts(json, parts);
  return json.dump();
}

ManifestParts unpacked_parts(std::string_view text) {
  OrderedJson json;
  check(read_json(text, json).line == 0, "parts of a manifest travel whole");
  try {
    return parts_from(json, "parts of a manifest");
  } catch (const std::exception& error) {
    throw InternalError(cat("parts of a manifest travel unchanged: ", error.what()));
  }
}

bool is_weight(const std::string& tensor) { return tensor.find('/') == tensor.npos; }

mesh::Index extents(const mesh::Box& box) {
  mesh::Index shape;
  for (size_t d = 0; d < box.begin.size(); ++d) shape.push_back(box.end[d] - box.begin[d]);
  return shape;
}

std::string stored_name(const std::string& tensor, const mesh::Index& shape, const mesh::Box& box) {
  if (extents(box) == shape) return tensor;
  std::vector<std::string> ranges;
  for (size_t d = 0; d < shape.size(); ++d) ranges.push_back(cat(box.begin[d], ":", box.end[d]));
  return cat(tensor, "[", joined(ranges, ","), "]");
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

// Returns false for a user's own folder, such as "model.tmp.old" beside a checkpoint "model".
bool is_temporary_name(std::string_view entry, const std::string& name) {
  const std::string begin = temporary_name(name);
  if (!entry.starts_with(begin)) return false;
  const std::string_view own = entry.substr(begin.size());
  if (own.empty()) return true;
  const size_t dash = own.find('-');
  return own[0] == '.' && dash != own.npos && dash > 1 && own.find_first_not_of("0123456789", 1) == dash &&
         own.size() == dash + 9 && own.find_first_not_of("0123456789abcdef", dash + 1) == own.npos;
}

std::string aside_name(const std::string& directory) { return without_last_slash(directory) + ".old"; }

}  // namespace braid::ckpt
