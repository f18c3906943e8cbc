// Digests of tokenizer files.
#include "braid/data/tokenizer_identity.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include "braid/base/digest.h"
#include "braid/base/errors.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigName = "tokenizer_config.json";

}  // namespace

std::vector<std::string> tokenizer_files(const std::string& name) {
  if (name == "bytes") return {};
  std::error_code unreadable;
  const bool folder = fs::is_directory(name, unreadable);
  const fs::path home = folder ? fs::path(name) : fs::path(name).parent_path();
  std::vector<std::string> files;
  if (!folder) {
    files = {name};
  } else if (fs::exists(home / "tokenizer.json", unreadable)) {
    files = {home / "tokenizer.json"};
  } else {
    files = {home / "vocab.json", home / "merges.txt"};
  }
  if (fs::exists(home / kConfigName, unreadable)) files.push_back(home / kConfigName);
  return files;
}

uint64_t tokenizer_identity(const std::string& name) {
  Digest digest;
  const auto add = [&](const std::string& text) { digest.add(std::as_bytes(std::span(text))); };
  if (name == "bytes") add("braid tokenizer: bytes");
  for (const auto& path : tokenizer_files(name)) {
    if (fs::path(path).filename() == kConfigName) continue;
    std::ifstream file(path, std::ios::binary);
    if (!file) throw IoError(path, -1, "cannot be read");
    const std::string content((std::istreambuf_iterator<char>(file)), {});
    add(std::to_string(content.size()) + "\n");
    add(content);
  }
  return digest.value();
}

}  // namespace braid
