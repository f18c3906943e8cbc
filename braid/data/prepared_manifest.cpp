// The JSON files of prepared data. Values are checked before they are used.
#include "braid/data/prepared_manifest.h"

#include <nlohmann/json.hpp>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/output_file.h"
#include "braid/base/path_look.h"
#include "braid/base/sealed_json.h"
#include "braid/base/text.h"

namespace braid::data {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kFormat = "braid prepared data";
constexpr int kVersion = 2;  // version 1, which has only XXH64 digests, is read too
constexpr int kIndent = 1;
constexpr int64_t kMaxBytes = 1'000'000'000;

void require(bool holds, const std::string& path, const std::string& rule) {
  if (!holds) throw IoError(path, -1, rule);
}

OrderedJson json_of(const std::string& name, const TokenFileInfo& file) {
  OrderedJson json{
      {"name", name}, {"bytes", file.bytes}, {"tokens", file.num_tokens}, {"documents", file.num_documents}};
  put_digest(json, file.digest);
  return json;
}

// Returns the file name. Refuses a name with a folder, so a manifest cannot name a file elsewhere.
std::string file_name(const OrderedJson& json, const std::string& path) {
  const auto name = json.at("name").get<std::string>();
  require(name.ends_with(".tokens") && name.find('/') == std::string::npos, path,
          cat("file name ", name, " must be one of this folder's .tokens"));
  return name;
}

TokenFileInfo info_of(const OrderedJson& json, const std::string& path) {
  const TokenFileInfo info{json.at("bytes").get<int64_t>(), json.at("tokens").get<int64_t>(),
                           json.at("documents").get<int64_t>(), digest_in(json, path)};
  require(info.num_tokens > 0 && info.num_documents > 0 && info.bytes > 0, path, "a listed file holds tokens");
  return info;
}

OrderedJson json_of(const PreparedSource& source) {
  OrderedJson json{{"inputs", source.inputs},        {"weight", source.weight},
                   {"files", source.num_files},      {"text_bytes", source.text_bytes},
                   {"listing", hex(source.listing)}, {"documents", source.num_documents},
                   {"parts", OrderedJson::array()}};
  if (source.bad_lines > 0) json["bad_lines"] = source.bad_lines;
  for (const auto& part : source.parts) {
    OrderedJson entry = OrderedJson::object();
    if (part.train.num_tokens > 0) entry["train"] = json_of(part.train_name, part.train);
    if (part.validation.num_tokens > 0) entry["validation"] = json_of(part.validation_name, part.validation);
    json["parts"].push_back(std::move(entry));
  }
  return json;
}

// Returns the documents of all files, for manifests that do not give the number of documents.
int64_t documents_in_files(const std::vector<PreparedPart>& parts) {
  int64_t sum = 0;
  for (const auto& part : parts) sum += part.train.num_documents + part.validation.num_documents;
  return sum;
}

PreparedSource source_of(const OrderedJson& json, const std::string& path) {
  PreparedSource source{json.at("inputs").get<std::vector<std::string>>(),
                        json.at("weight").get<double>(),
                        hex_in(json, "listing", path),
                        json.at("files").get<int64_t>(),
                        json.at("text_bytes").get<int64_t>(),
                        {},
                        json.value("bad_lines", int64_t{0})};
  require(source.weight >= 0, path, "a weight is at least 0");
  for (const auto& entry : json.at("parts")) {
    PreparedPart part;
    if (entry.contains("train")) {
      part.train_name = file_name(entry["train"], path);
      part.train = info_of(entry["train"], path);
    }
    if (entry.contains("validation")) {
      part.validation_name = file_name(entry["validation"], path);
      part.validation = info_of(entry["validation"], path);
    }
    source.parts.push_back(std::move(part));
  }
  source.num_documents = json.value("documents", documents_in_files(source.parts));
  return source;
}

OrderedJson json_of(const PreparedManifest& manifest) {
  const auto& mark = manifest.tokenizer;
  OrderedJson json{
      {"format", kFormat},
      {"version", kVersion},
      {"tokenizer",
       {{"name", mark.name}, {"xxh64", hex(mark.identity)}, {"vocab", mark.vocab}, {"end_of_text", mark.end_of_text}}},
      {"validation_fraction", manifest.validation_fraction},
      {"shard_tokens", manifest.shard_tokens},
      {"include", manifest.include},
      {"text_field", manifest.text_field},
      {"sources", OrderedJson::array()}};
  for (const auto& source : manifest.sources) json["sources"].push_back(json_of(source));
  return json;
}

PreparedManifest manifest_of(const OrderedJson& json, const std::string& path) {
  require(json.at("format") == kFormat, path, cat("format must be \"", kFormat, "\""));
  const auto version = json.at("version").get<int64_t>();
  require(version >= 1 && version <= kVersion, path,
          cat("has format version ", version, "; this braid reads 1 to ", kVersion));
  const OrderedJson& mark = json.at("tokenizer");
  PreparedManifest manifest{{mark.at("name").get<std::string>(), hex_in(mark, "xxh64", path),
                             mark.at("vocab").get<int64_t>(), mark.at("end_of_text").get<int64_t>()},
                            json.at("validation_fraction").get<double>(),
                            json.at("shard_tokens").get<int64_t>(),
                            json.at("include").get<std::vector<std::string>>(),
                            json.at("text_field").get<std::string>(),
                            {}};
  require(manifest.tokenizer.vocab >= 1 && manifest.tokenizer.vocab <= 1 << 24, path, "vocab is from 1 to 2^24");
  for (const auto& source : json.at("sources")) manifest.sources.push_back(source_of(source, path));
  return manifest;
}

}  // namespace

int64_t PreparedManifest::num_documents() const {
  int64_t sum = 0;
  for (const auto& source : sources) sum += source.num_documents;
  return sum;
}

std::string manifest_json(const PreparedManifest& manifest) { return sealed_json(json_of(manifest), kIndent); }

std::string progress_json(const PrepareProgress& progress) {
  OrderedJson json = json_of(progress.manifest);
  const auto& [source, file, offset] = progress.cursor;
  json["cursor"] = {{"source", source}, {"file", file}, {"offset", offset}};
  return sealed_json(json, kIndent);
}

PreparedManifest parse_prepared_manifest(const std::string& path, const std::string& text) {
  PreparedManifest manifest;
  read_sealed_json(path, text, [&](const OrderedJson& json) { manifest = manifest_of(json, path); });
  return manifest;
}

PrepareProgress parse_prepare_progress(const std::string& path, const std::string& text) {
  PrepareProgress progress;
  read_sealed_json(path, text, [&](const OrderedJson& json) {
    const OrderedJson& at = json.at("cursor");
    progress = {manifest_of(json, path),
                {at.at("source").get<int64_t>(), at.at("file").get<int64_t>(), at.at("offset").get<int64_t>()}};
  });
  return progress;
}

bool is_prepared(const std::string& folder) {
  if (path_kind(folder) != PathKind::Folder) return false;
  const std::string path = folder + "/manifest.json";
  if (path_kind(path) != PathKind::File) return path_kind(folder + "/progress.json") != PathKind::Nothing;
  return CheckedFile(path).content(kMaxBytes).find(kFormat) != std::string::npos;
}

PreparedManifest read_prepared_manifest(const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  return parse_prepared_manifest(path, CheckedFile(path).content(kMaxBytes));
}

void replace_file(FileSystem& files, const std::string& path, const std::string& text) {
  write_file(path, text, files);
}

}  // namespace braid::data
