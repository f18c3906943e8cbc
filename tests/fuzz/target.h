// A target of the fuzzer: a reader of braid's, given any bytes. Every target says which bytes are good to begin with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braid::fuzz {

struct Target {
  std::string name;
  // Reads `input` as somebody's file. ConfigError and IoError are answers; anything else that is thrown, a sanitizer's
  // report and a broken promise of the reader's (InternalError) are defects.
  void (*run)(const std::string& input);
  // Inputs that the reader takes, made by the writer of the same format.
  std::vector<std::string> (*seeds)();
  // Words of the format, which changes of inputs are made of beside single bytes.
  std::vector<std::string> words;
};

// safetensors, manifest, configuration, tokenizer, token_file, schedule_table, cluster, job_frames, job_words.
const std::vector<Target>& targets();
const Target* find_target(std::string_view name);

Target safetensors_target();
Target manifest_target();
Target configuration_target();
Target tokenizer_target();
Target token_file_target();
Target schedule_table_target();
Target cluster_target();
Target job_frames_target();
Target job_words_target();

// Readers that open files are given this one's path, whose content is replaced each time.
const std::string& as_file(const std::string& input);

}  // namespace braid::fuzz
