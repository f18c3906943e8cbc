// The record of input files, its JSON, and the comparison of two records path by path.
#include "braid/tokenize/input_record.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "braid/base/checked_file.h"
#include "braid/base/path_look.h"
#include "braid/base/sealed_json.h"
#include "braid/base/text.h"
#include "braid/base/utf8.h"

namespace braid::tokenize {
namespace {

constexpr const char* kRecordFormat = "braid inputs of prepared data";
constexpr int64_t kMaxRecordBytes = 4'000'000'000;
constexpr size_t kMostChanges = 20;

std::map<std::string, InputFile> by_path(const InputRecord& record) {
  std::map<std::string, InputFile> files;
  for (const auto& file : record) files.emplace(file.path, file);
  return files;
}

NamedDigest file_digest(const std::string& path) {
  constexpr int64_t kChunkBytes = 4 << 20;
  const CheckedFile file(path, Links::Followed);
  Digest digest(DigestKind::Xxh3);
  std::string chunk;
  for (int64_t at = 0; at < file.bytes(); at += kChunkBytes) {
    chunk.resize(static_cast<size_t>(std::min(kChunkBytes, file.bytes() - at)));
    file.read(at, std::as_writable_bytes(std::span(chunk)));
    digest.add(std::as_bytes(std::span(chunk)));
  }
  return digest.named();
}

// Returns how a file has changed; empty if it has not.
std::string difference_of(const InputFile& now, const InputFile& was, const std::string& folder) {
  if (now.bytes != was.bytes)
    return cat("has ", counted(now.bytes, "byte"), "; it had ", was.bytes, " when ", folder, " was begun");
  const bool same = now.changed == was.changed || (was.digest && was.digest == file_digest(now.path));
  return same ? "" : cat("was changed after ", folder, " was begun");
}

}  // namespace

InputRecord input_record(const std::vector<std::vector<Document>>& sources) {
  InputRecord record;
  for (const auto& files : sources) {
    for (const auto& file : files) {
      record.push_back({whole_characters(file.path), file.bytes, change_time(file.path)});
    }
  }
  return record;
}

// A path with bytes that are not UTF-8 is recorded with U+FFFD, so its file is not found and gets no digest.
void add_digests(InputRecord& record) {
  for (InputFile& file : record) {
    const bool same = path_kind(file.path) == PathKind::File && file_bytes(file.path) == file.bytes &&
                      change_time(file.path) == file.changed;
    if (same) file.digest = file_digest(file.path);
  }
}

std::string input_record_json(const InputRecord& record) {
  nlohmann::ordered_json json{{"format", kRecordFormat}, {"files", nlohmann::ordered_json::array()}};
  for (const auto& file : record) {
    json["files"].push_back({{"path", file.path}, {"bytes", file.bytes}, {"changed", file.changed}});
    if (file.digest) put_digest(json["files"].back(), *file.digest);
  }
  return sealed_json(json, 1);
}

std::optional<InputRecord> recorded_inputs(const std::string& folder) {
  const std::string path = folder + "/" + kInputRecordName;
  if (path_kind(path) == PathKind::Nothing) return std::nullopt;
  InputRecord record;
  read_sealed_json(path, CheckedFile(path).content(kMaxRecordBytes), [&](const nlohmann::ordered_json& json) {
    if (json.at("format") != kRecordFormat) throw IoError(path, -1, cat("format must be \"", kRecordFormat, "\""));
    for (const auto& file : json.at("files")) {
      record.push_back(
          {file.at("path").get<std::string>(), file.at("bytes").get<int64_t>(), file.at("changed").get<int64_t>()});
      if (file.contains(text(DigestKind::Xxh3))) record.back().digest = digest_in(file, path);
    }
  });
  return record;
}

std::vector<Problem> changed_inputs(const InputRecord& now, const InputRecord& was, const std::string& folder) {
  const auto files = by_path(now), before = by_path(was);
  std::vector<Problem> found;
  for (const auto& [path, file] : files) {
    const auto known = before.find(path);
    const std::string fault = known == before.end() ? cat("was not there when ", folder, " was begun")
                                                    : difference_of(file, known->second, folder);
    if (!fault.empty()) found.push_back({"INPUT", path, fault, ""});
  }
  for (const auto& [path, file] : before) {
    if (!files.contains(path)) found.push_back({"INPUT", path, cat("is gone; ", folder, " was begun with it"), ""});
  }
  if (found.size() > kMostChanges) {
    const size_t more = found.size() - kMostChanges;
    found.resize(kMostChanges);
    found.push_back({"INPUT", "", cat("has ", more, " more such files"), ""});
  }
  if (!found.empty()) found.push_back({"--out", folder, "must be another folder, or removed, where files changed", ""});
  return found;
}

}  // namespace braid::tokenize
