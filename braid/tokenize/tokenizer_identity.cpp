// Digests of tokenizer files.
#include "braid/tokenize/tokenizer_identity.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "braid/base/checked_file.h"
#include "braid/base/digest.h"
#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/spec/data_spec.h"

namespace braid::tokenize {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigName = "tokenizer_config.json";

std::string tokenizer_bytes(const std::string& path) { return file_content(path, kMaxTokenizerBytes); }

}  // namespace

std::vector<std::string> tokenizer_files(const std::string& name) {
  if (name == kByteTokenizer) return {};
  const auto is_there = [](const fs::path& path) { return path_kind(path) != PathKind::Nothing; };
  const bool folder = path_kind(name) == PathKind::Folder;
  const fs::path home = folder ? fs::path(name) : fs::path(name).parent_path();
  std::vector<std::string> files;
  if (!folder) {
    files = {name};
  } else if (is_there(home / "tokenizer.json")) {
    files = {home / "tokenizer.json"};
  } else {
    files = {home / "vocab.json", home / "merges.txt"};
  }
  if (is_there(home / kConfigName)) files.push_back(home / kConfigName);
  return files;
}

uint64_t tokenizer_identity(const std::string& name) {
  Digest digest(DigestKind::Xxh64);
  if (name == kByteTokenizer) digest.add(std::as_bytes(std::span(std::string_view("braid tokenizer: bytes"))));
  for (const auto& path : tokenizer_files(name)) {
    if (fs::path(path).filename() != kConfigName) add_sized(digest, tokenizer_bytes(path));
  }
  return digest.value();
}

void require_own_tokenizer(const data::PreparedFolder& folder) {
  const std::string place = data::tokenizer_name(folder);
  if (tokenizer_identity(place) == folder.manifest.tokenizer.identity) return;
  throw IoError(place, -1, cat("is not the tokenizer that the data in ", folder.path, " were prepared with"));
}

std::map<std::string, std::string> tokenizer_copy(const std::string& name) {
  std::map<std::string, std::string> copy;
  for (const auto& path : tokenizer_files(name)) {
    const std::string file = fs::path(path).filename().string();
    const bool usual = file == "vocab.json" || file == "merges.txt" || file == kConfigName;
    copy[usual ? file : "tokenizer.json"] = tokenizer_bytes(path);
  }
  return copy;
}

uint64_t tokenizer_hash(uint64_t identity, int64_t end_of_text) {
  Digest digest(DigestKind::Xxh64);
  add_sized(digest, cat(hex(identity), " ", end_of_text));
  return std::max<uint64_t>(1, digest.value());
}

}  // namespace braid::tokenize
