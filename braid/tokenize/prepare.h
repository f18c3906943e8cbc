// Turns text into prepared data: files and folders become token files and a manifest. A preparation that was killed can
// be resumed.
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
  // the folder to fill: missing, empty, or with a finished or unfinished preparation of the same request
  std::string out;
  std::string tokenizer = "bytes";
  std::vector<std::string> inputs;   // text files, .jsonl files, folders
  std::vector<std::string> include;  // file name patterns inside folders; empty: all
  std::vector<double> weights;  // one per input, which is then a source of its own; empty: all inputs are one source
  double validation_fraction = 0.05;
  int64_t shard_tokens = 100'000'000;  // a token file ends with the document that reaches it
  std::string text_field = "text";     // field of a line of .jsonl that holds the text
  BadLines bad_lines = BadLines::Named;
  int threads = 1;
};

struct PrepareStatus {
  int64_t text_bytes = 0, total_bytes = 0;  // bytes of the inputs: processed and total
  int64_t num_tokens = 0, num_documents = 0;
};

struct PrepareResult {
  data::PreparedManifest manifest;
  PrepareStatus first, last;    // status at the beginning (not 0 if it resumed an earlier one) and at the end
  bool was_complete = false;    // true if the preparation was complete before the call
  PassedOver passed_over = {};  // paths passed over in the inputs' folders
};

// Fills `request.out`. If a call is killed at any moment, a call with the same request resumes after the last finished
// token file. The bytes of the folder are then the same as without the interruption. A complete folder is left as it
// is.
//
// Resuming requires unchanged inputs. If a file is new, gone, or has another size or time of change than when the
// folder was begun, the call names it and changes nothing.
//
// Calls `report` from time to time with the status. The result does not depend on `threads`. Memory: a few MiB of text
// with its tokens, or the largest document, and 8 bytes per document of a token file. Throws ConfigError with every
// problem of the request. Also throws ConfigError for bad lines of .jsonl files (up to 20), unless they are to be
// skipped. Throws IoError.
PrepareResult prepare(const PrepareRequest& request, FileSystem& files,
                      const std::function<void(const PrepareStatus&)>& report);

}  // namespace braid::tokenize
