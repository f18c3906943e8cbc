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
  data::PreparedManifest manifest;           // without parts
  std::vector<std::vector<Document>> files;  // of each source
  PassedOver passed_over;                    // in all inputs
  std::unique_ptr<Tokenizer> tokenizer;
  InputRecord record;  // of `files`
};

// Throws ConfigError with every problem of the request.
PreparePlan prepare_plan(const PrepareRequest& request);

// Returns the progress of an earlier call in the plan's folder: empty without one; the whole manifest with a cursor
// behind the last source if it is complete. Throws ConfigError if the folder holds anything else, was begun with other
// options, or with files that have changed since; IoError if its manifest is damaged.
std::optional<data::PrepareProgress> earlier_progress(const PrepareRequest& request, const PreparePlan& plan);

}  // namespace braid::tokenize
