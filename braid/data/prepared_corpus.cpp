// The training blend and the validation blend of prepared data, built by the same code.
#include "braid/data/prepared_corpus.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/spec/data_spec.h"

namespace braid::data {
namespace {

enum class Half { Train, Validation };

// The training files or the validation files of one source of a folder, and the source's weight.
struct OpenSource {
  std::vector<Tokens> files;
  double weight = 0;

  int64_t num_tokens() const { return JoinedTokens(files).num_tokens(); }
};
using OpenFolder = std::vector<OpenSource>;

OpenFolder open_half(const PreparedFolder& folder, Half half, const std::shared_ptr<ResidentPages>& pages) {
  OpenFolder sources;
  for (const auto& source : folder.manifest.sources) {
    OpenSource open{{}, source.weight};
    for (const auto& part : source.parts) {
      const bool train = half == Half::Train;
      const TokenFileInfo& listed = train ? part.train : part.validation;
      if (listed.num_tokens == 0) continue;
      open.files.push_back(open_listed(folder, train ? part.train_name : part.validation_name, listed, pages));
    }
    sources.push_back(std::move(open));
  }
  return sources;
}

Tokens joined_files(const std::vector<const OpenSource*>& sources) {
  std::vector<Tokens> files;
  for (const auto* source : sources) files.insert(files.end(), source->files.begin(), source->files.end());
  return files.size() == 1 ? files[0] : std::make_shared<JoinedTokens>(std::move(files));
}

std::vector<const OpenSource*> all_of(const OpenFolder& folder) {
  std::vector<const OpenSource*> sources;
  for (const auto& source : folder) sources.push_back(&source);
  return sources;
}

bool weighted(const OpenFolder& folder) { return !folder.empty() && folder[0].weight > 0; }

// Adds the folder's parts to the blend. Their weights add up to `weight`.
void add_parts(const OpenFolder& folder, double weight, Blend& blend) {
  if (!weighted(folder)) {
    blend.push_back({joined_files(all_of(folder)), weight});
    return;
  }
  double sum = 0;
  for (const auto& source : folder) sum += source.weight;
  for (const auto& source : folder) blend.push_back({joined_files({&source}), weight * source.weight / sum});
}

Blend blend_of(const std::vector<OpenFolder>& folders, const std::vector<double>& weights) {
  Blend blend;
  if (weights.empty() && std::none_of(folders.begin(), folders.end(), weighted)) {
    std::vector<const OpenSource*> sources;
    for (const auto& folder : folders) {
      for (const auto& source : folder) sources.push_back(&source);
    }
    blend.push_back({joined_files(sources), 1});
    return blend;
  }
  for (size_t f = 0; f < folders.size(); ++f) {
    double tokens = 0;
    for (const auto& source : folders[f]) tokens += static_cast<double>(source.num_tokens());
    add_parts(folders[f], weights.empty() ? tokens : weights[f], blend);
  }
  return blend;
}

CorpusOrigin origin_of(const std::vector<PreparedFolder>& folders, const std::shared_ptr<ResidentPages>& pages) {
  CorpusOrigin origin;
  std::vector<std::string> paths;
  const auto add = [&](const std::string& folder, const std::string& name, const TokenFileInfo& listed) {
    if (listed.num_tokens == 0) return;
    origin.sources.push_back({name, listed.num_documents, listed.bytes, listed.digest});
    paths.push_back(folder + "/" + name);
  };
  for (const auto& folder : folders) {
    for (const auto& source : folder.manifest.sources) {
      for (const auto& part : source.parts) {
        add(folder.path, part.train_name, part.train);
        add(folder.path, part.validation_name, part.validation);
      }
    }
  }
  origin.digest_as = [paths, pages](size_t source, DigestKind kind) {
    return TokenFile(paths.at(source), pages).digest_as(kind);
  };
  return origin;
}

}  // namespace

std::shared_ptr<TokenFile> open_listed(const PreparedFolder& folder, const std::string& name,
                                       const TokenFileInfo& listed, std::shared_ptr<ResidentPages> pages) {
  auto file = std::make_shared<TokenFile>(folder.path + "/" + name, std::move(pages));
  const auto& mark = folder.manifest.tokenizer;
  if (file->info() != listed || file->vocab() != mark.vocab || file->tokenizer() != mark.identity) {
    throw IoError(file->path(), 0, "is not the file that manifest.json lists");
  }
  return file;
}

std::vector<PreparedFolder> prepared_folders(const std::vector<std::string>& paths) {
  std::vector<PreparedFolder> folders;
  std::vector<Problem> found;
  const bool any = std::any_of(paths.begin(), paths.end(), is_prepared);
  for (const auto& path : any ? paths : std::vector<std::string>()) {
    if (!is_prepared(path)) {
      found.push_back({"data.paths", path, "must be prepared data like the others (braid data prepare)", ""});
    } else if (path_kind(path + "/manifest.json") == PathKind::Nothing) {
      found.push_back({"data.paths", path, "is not finished: call the same braid data prepare again", ""});
    } else {
      folders.push_back({path, read_prepared_manifest(path)});
    }
  }
  for (const auto& [path, manifest] : folders) {
    auto mark = manifest.tokenizer;
    mark.name = folders[0].manifest.tokenizer.name;
    if (mark != folders[0].manifest.tokenizer) {
      found.push_back({"data.paths", path, cat("must have the tokenizer of ", folders[0].path), ""});
    }
  }
  if (!found.empty()) throw ConfigError(std::move(found));
  return folders;
}

std::string tokenizer_name(const PreparedFolder& folder) {
  const std::string& name = folder.manifest.tokenizer.name;
  return name == kByteTokenizer ? name : folder.path + "/" + name;
}

Corpus prepared_corpus(const std::vector<PreparedFolder>& folders, const std::vector<double>& weights) {
  const auto pages = std::make_shared<ResidentPages>();
  std::vector<OpenFolder> train, validation;
  Corpus corpus;
  for (const auto& folder : folders) {
    train.push_back(open_half(folder, Half::Train, pages));
    validation.push_back(open_half(folder, Half::Validation, pages));
    corpus.num_documents += folder.manifest.num_documents();
  }
  corpus.origin = origin_of(folders, pages);
  corpus.train = blend_of(train, weights);
  corpus.validation = blend_of(validation, weights);
  std::erase_if(corpus.validation, [](const BlendPart& part) { return part.tokens->num_tokens() == 0; });
  return corpus;
}

}  // namespace braid::data
