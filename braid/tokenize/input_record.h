// Which files prepared data are made of, as they were when the work was begun: a file of its own in the folder, so that
// a later call can say which of them is another one by now.
// It knows what lies in the folder beside it as little as what stands in the files.
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
  std::string path;  // bytes that are no UTF-8 replaced by U+FFFD
  int64_t bytes = 0;
  int64_t changed = 0;                     // change_time()
  std::optional<NamedDigest> digest = {};  // of its bytes, where the data were finished

  bool operator==(const InputFile&) const = default;
};

using InputRecord = std::vector<InputFile>;  // of all sources, in their order

// The files as they are. Throws IoError.
InputRecord input_record(const std::vector<std::vector<Document>>& sources);

// Gives each file that is still of its recorded size and time its digest, for which it is read once more.
void add_digests(InputRecord& record);

std::string input_record_json(const InputRecord& record);
// Returns the record in `folder`; nothing if there is none. Throws IoError if it is damaged.
std::optional<InputRecord> recorded_inputs(const std::string& folder);

// A problem of INPUT for each file (of the first twenty) that is new, gone, or of another size or time than in the
// record of `folder`, and what to do about them. One of another time alone is the same where its digest says so: files
// are copied and touched. Throws IoError.
std::vector<Problem> changed_inputs(const InputRecord& now, const InputRecord& was, const std::string& folder);

}  // namespace braid::tokenize
