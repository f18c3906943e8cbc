// Loads folders of prepared data as a corpus: token files are mapped, sources are blended by weight.
#pragma once

#include <string>
#include <vector>

#include "braid/data/corpus.h"
#include "braid/data/prepared_manifest.h"
#include "braid/data/token_file.h"

namespace braid::data {

struct PreparedFolder {
  std::string path;
  PreparedManifest manifest;
};

// Returns the manifests of `paths` if all are folders of prepared data, and nothing if none is. Throws ConfigError (key
// "data.paths") if only some are, if one is unfinished, or if their tokenizers differ. Throws IoError if a manifest is
// damaged.
std::vector<PreparedFolder> prepared_folders(const std::vector<std::string>& paths);

// Returns the name by which configurations give the folder's tokenizer: "bytes" or a path.
std::string tokenizer_name(const PreparedFolder& folder);

// Opens every token file and checks that it is the one in the manifest. Throws IoError. `weights` has one entry per
// folder, or none.
// * The samples of a folder are proportional to its weight, or without weights to its tokens.
// * Inside a folder, sources are blended by the weights they were prepared with, else by their tokens.
// * Without any weight there is one part: all folders and sources one after another.
// * Parts without a held-out token are left out of `validation`.
// * The origin of the corpus is the list of token files in the manifests.
Corpus prepared_corpus(const std::vector<PreparedFolder>& folders, const std::vector<double>& weights);

// Opens one file of the folder. Throws IoError if it is not the one listed.
std::shared_ptr<TokenFile> open_listed(const PreparedFolder& folder, const std::string& name,
                                       const TokenFileInfo& listed, std::shared_ptr<ResidentPages> pages);

}  // namespace braid::data
