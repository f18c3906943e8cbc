// The list, and the file that readers are given.
#include "tests/fuzz/target.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "braid/base/text.h"

namespace braid::fuzz {

const std::vector<Target>& targets() {
  static const std::vector<Target> kTargets{safetensors_target(), manifest_target(),   configuration_target(),
                                            tokenizer_target(),   token_file_target(), schedule_table_target(),
                                            cluster_target(),     job_frames_target(), job_words_target()};
  return kTargets;
}

const Target* find_target(std::string_view name) {
  for (const Target& target : targets()) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

const std::string& as_file(const std::string& input) {
  struct Place {
    Place() { std::filesystem::create_directories(folder); }
    ~Place() { std::filesystem::remove_all(folder); }
    const std::string folder = std::filesystem::temp_directory_path() / cat("braid_fuzz_", ::getpid());
    const std::string path = folder + "/tokenizer.json";
  };
  static const Place kPlace;
  std::ofstream(kPlace.path, std::ios::binary | std::ios::trunc) << input;
  return kPlace.path;
}

}  // namespace braid::fuzz
