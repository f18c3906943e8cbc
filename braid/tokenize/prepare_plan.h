// The plan of a preparation, made before anything is written.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "braid/tokenize/document_list.h"
#include "braid/tokenize/input_record.h"
#include "braid/tokenize/prepare.h"
#include "braid/tokenize/tokenizer.h"

namespace braid::tokenize {

struct PreparePlan {
  data::PreparedManifest manifest;           // a manifest without parts
  std::vector<std::vector<Document>> files;  // files of each source
  PassedOver passed_over;                    // paths passed over in all inputs
  std::unique_ptr<Tokenizer> tokenizer;
  InputRecord record;  // record of `files`
};

// Makes the plan. Throws ConfigError with every problem of the request.
PreparePlan prepare_plan(const PrepareRequest& request);

// Returns the progress of an earlier call in the plan's folder, or nullopt if there was none. If that call completed,
// returns the whole manifest with a cursor after the last source. Throws ConfigError if the folder holds anything else,
// was begun with other options, or was begun with files that have changed since. Throws IoError if its manifest is
// damaged.
std::optional<data::PrepareProgress> earlier_progress(const PrepareRequest& request, const PreparePlan& plan);

}  // namespace braid::tokenize
