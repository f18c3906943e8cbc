// The reader of Hugging Face's config.json: finds the reader of its model type.
#include "braid/model/hf_config.h"

#include <nlohmann/json.hpp>

#include "braid/base/checked_file.h"
#include "braid/base/json_text.h"
#include "braid/base/text.h"
#include "braid/model/families.h"
#include "braid/model/hf_keys.h"

namespace braid::model {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostBytes = int64_t{1} << 20;  // a configuration is a few kilobytes

std::vector<HfReader> all_readers() {
  std::vector<HfReader> all;
  for (const Family& family : families()) {
    all.insert(all.end(), family.config.readers.begin(), family.config.readers.end());
  }
  return all;
}

}  // namespace

ModelSpec parse_hf_config(const std::string& json_text, const std::string& origin, std::vector<Problem>& problems) {
  Json root;
  const JsonFault fault = read_json(json_text, root);
  if (fault.line > 0) {
    problems.push_back({cat(origin, ":", fault.line), "", fault.why, ""});
    return {};
  }
  if (!root.is_object()) {
    problems.push_back({origin, "", "must hold a JSON object", ""});
    return {};
  }
  const HfKeys keys(root, origin + ": ", problems);
  std::vector<std::string> known, quoted;
  const std::vector<HfReader> readers = all_readers();
  for (const HfReader& reader : readers) {
    known.emplace_back(reader.model_type);
    quoted.push_back(quoted_text(known.back()));
  }
  keys.need_one_of("model_type", known);
  const Json* type = keys.find("model_type");
  if (!type) keys.refuse("model_type", cat("must be given, one of ", joined(quoted)));
  if (keys.find("quantization_config"))
    keys.refuse("quantization_config", "must not be there: braid reads weights of no such kind");
  keys.agree("torch_dtype", keys, "dtype");
  for (const HfReader& reader : readers) {
    if (type && *type == reader.model_type) return reader.read(keys);
  }
  return {};
}

ModelSpec read_hf_config(const std::string& path, std::vector<Problem>& problems) {
  std::string text;
  try {
    text = file_content(path, kMostBytes);
  } catch (const IoError& error) {
    problems.push_back({"model.config", quoted_text(path), error.what(), ""});
    return {};
  }
  return parse_hf_config(text, path, problems);
}

}  // namespace braid::model
