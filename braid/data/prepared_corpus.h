// Folders of prepared data as a corpus: token files mapped, sources blended by weight.
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

// The manifests of `paths` when all are folders of prepared data; empty when none is. Throws ConfigError (key
// "data.paths") when some are and some are not, when one is not finished, and when their tokenizers differ; IoError
// when a manifest is damaged.
std::vector<PreparedFolder> prepared_folders(const std::vector<std::string>& paths);

// Returns the name of the folder's tokenizer for configurations: "bytes" or a path.
std::string tokenizer_name(const PreparedFolder& folder);

// Opens every token file and checks that it is the one the manifest lists. `weights`: one per folder, or none. A folder
// has the share of its weight, without weights that of its tokens; inside it sources share by the weights they were
// prepared with, else by their tokens. Without any weight everything is one part, folders and sources one after
// another. Parts without a held-out token are left out of `validation`. The corpus' origin is the token files as their
// manifests list them. Throws IoError.
Corpus prepared_corpus(const std::vector<PreparedFolder>& folders, const std::vector<double>& weights);

// Opens one file of the folder. Throws IoError when it is not the one listed.
std::shared_ptr<TokenFile> open_listed(const PreparedFolder& folder, const std::string& name,
                                       const TokenFileInfo& listed, std::shared_ptr<ResidentPages> pages);

}  // namespace braid::data
