// Compares the data's marks, as checkpoints have them, and the files that describe weights.
#include "braid/train/host_agreement.h"

#include <filesystem>
#include <span>

#include "braid/base/checked_file.h"
#include "braid/base/digest.h"
#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/exchange.h"

namespace braid::train {
namespace {

// A checkpoint's manifest has the digests of all its files; a Hugging Face directory has none, so that its description
// and the size of its weights stand for it.
std::string weights_mark(const std::string& directory) {
  if (directory.empty()) return "";
  constexpr int64_t kMostBytes = 1'000'000'000;  // as of a manifest
  std::string mark;
  for (const char* name : {"manifest.json", "config.json"}) {
    const std::string path = cat(directory, "/", name);
    const std::string content = path_kind(path) == PathKind::Nothing ? "" : file_content(path, kMostBytes);
    Digest digest(DigestKind::Xxh3);
    digest.add(std::as_bytes(std::span(content)));
    mark += text(digest.named()) + " ";
  }
  std::error_code none;
  const auto bytes = std::filesystem::file_size(std::filesystem::path(directory) / "model.safetensors", none);
  return cat(mark, none ? 0 : bytes);
}

struct Input {
  const char* key;
  std::string mark;
};

std::vector<Input> inputs_of(const RunSpec& spec, const data::CorpusOrigin& origin) {
  std::vector<std::string> sources;
  for (const ContentMark& source : origin.sources) sources.push_back(text(source.digest));
  return {{"data.paths", joined(sources)},
          {"data.tokenizer", cat(origin.tokenizer)},
          {"train.init", weights_mark(spec.train.init)},
          {"train.resume", weights_mark(spec.train.resume)}};
}

}  // namespace

void require_same_inputs(const RunSpec& spec, const data::CorpusOrigin& origin, Communicator& world) {
  std::vector<Problem> problems;
  const auto hosts = ckpt::all_gather_text(host_name(), at::kCPU, world);
  for (const auto& [key, mark] : inputs_of(spec, origin)) {
    const auto all = ckpt::all_gather_text(mark, at::kCPU, world);
    std::vector<std::string> others;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank] != all[0]) others.push_back(cat("rank ", rank, " on ", hosts[rank]));
    }
    if (!others.empty()) {
      problems.push_back(
          {key, "", cat("must name the same files on all hosts; those of ", joined(others), " are others"), ""});
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace braid::train
