// Text to prepared data: files and folders become token files and a manifest, in steps that survive being killed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braid/base/file_system.h"
#include "braid/data/prepared_manifest.h"
#include "braid/tokenize/document_list.h"
#include "braid/tokenize/document_reader.h"

namespace braid::tokenize {

struct PrepareRequest {
  std::string out;  // the folder to fill: not there, empty, or holding a preparation of the same, finished or not
  std::string tokenizer = "bytes";
  std::vector<std::string> inputs;   // text files, .jsonl files, folders
  std::vector<std::string> include;  // file name patterns inside folders; empty: all
  std::vector<double> weights;       // one per input, each then a source of its own; empty: one source of all inputs
  double validation_fraction = 0.05;
  int64_t shard_tokens = 100'000'000;  // a token file ends with the document that reaches it
  std::string text_field = "text";     // of a line of .jsonl
  BadLines bad_lines = BadLines::Named;
  int threads = 1;
};

struct PrepareStatus {
  int64_t text_bytes = 0, total_bytes = 0;  // of the inputs, done and in all
  int64_t num_tokens = 0, num_documents = 0;
};

struct PrepareResult {
  data::PreparedManifest manifest;
  PrepareStatus first, last;    // where it began (not 0 when it went on with an earlier one) and ended
  bool was_complete = false;    // when it was called: nothing was left to do
  PassedOver passed_over = {};  // in the inputs' folders
};

// Fills `request.out`. Killed at any moment and called again with the same request it goes on behind the last finished
// token file, and the bytes of the folder come out as if it had never stopped. A folder that is complete is left as it
// is. Either was made of the same inputs: a file that is new, gone, or of another size or time of change since the
// folder was begun is named and nothing is done. `tell` hears from time to time where it is. The result does not depend
// on `threads`. Memory: a few MiB of text with its tokens, or the largest document, and 8 bytes per document of a token
// file. Throws ConfigError with every problem of the request, or of the lines of .jsonl files (up to 20) unless bad
// ones are to be skipped; IoError.
PrepareResult prepare(const PrepareRequest& request, FileSystem& files,
                      const std::function<void(const PrepareStatus&)>& tell);

}  // namespace braid::tokenize
