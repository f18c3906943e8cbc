// Values by name as files of a folder, for ranks that are processes with nothing else in common.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/control/key_value_store.h"

namespace braid {

class FolderStore final : public control::KeyValueStore {
 public:
  explicit FolderStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void set(const std::string& key, const std::string& value) override {
    const std::filesystem::path made = path(cat(key, ".", getpid())), place = path(key);
    std::ofstream(made, std::ios::binary) << value;
    std::filesystem::rename(made, place);
  }
  std::optional<std::string> get(const std::string& key, double seconds) override {
    const double end = now_seconds() + seconds;
    while (!std::filesystem::exists(path(key))) {
      if (now_seconds() >= end) return std::nullopt;
      usleep(1000);
    }
    std::ifstream in(path(key), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

 private:
  std::filesystem::path path(std::string key) const {
    std::ranges::replace(key, '/', '_');
    return folder_ / key;
  }

  const std::filesystem::path folder_;
};

}  // namespace braid
