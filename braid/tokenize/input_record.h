// The record of the input files of prepared data, as they were when the preparation began. It is a file in the folder
// of prepared data. From it a later call detects which inputs have changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/base/digest.h"
#include "braid/tokenize/document_list.h"

namespace braid::tokenize {

constexpr const char* kInputRecordName = "inputs.json";

struct InputFile {
  std::string path;  // path with bytes that are not UTF-8 replaced by U+FFFD
  int64_t bytes = 0;
  int64_t changed = 0;                     // result of change_time()
  std::optional<NamedDigest> digest = {};  // digest of its content; only in finished data

  bool operator==(const InputFile&) const = default;
};

using InputRecord = std::vector<InputFile>;  // files of all sources, in their order

// Returns the current record of the files. Throws IoError.
InputRecord input_record(const std::vector<std::vector<Document>>& sources);

// Adds the digest of each file that still has its recorded size and time. Reads these files once more.
void add_digests(InputRecord& record);

std::string input_record_json(const InputRecord& record);
// Returns the record in `folder`, or nullopt if there is none. Throws IoError if it is damaged.
std::optional<InputRecord> recorded_inputs(const std::string& folder);

// Returns a problem of INPUT for each file that is new, gone, or has another size or time than in the record of
// `folder`. Lists up to twenty files and what to do about them. A file that differs only in time is unchanged if its
// digest is equal: files are copied and touched. Throws IoError.
std::vector<Problem> changed_inputs(const InputRecord& now, const InputRecord& was, const std::string& folder);

}  // namespace braid::tokenize
