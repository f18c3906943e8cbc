// Changes an input a little: bytes, runs of bytes, numbers, words of the format, parts of another input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid::fuzz {

class Mutator {
 public:
  // The same seed makes the same changes. `words` outlives this.
  Mutator(uint64_t seed, const std::vector<std::string>& words) : seed_(seed), words_(words) {}

  // `input` with one to eight changes, at most kMostBytes long. `other` is any other input.
  std::string changed(std::string input, const std::string& other);
  // A number in [0, count).
  size_t draw(size_t count);

  static constexpr size_t kMostBytes = 1 << 13;

 private:
  void change(std::string& input, const std::string& other);
  void put(std::string& input, const std::string& text);
  void change_bytes(std::string& input);
  void move_bytes(std::string& input);

  const uint64_t seed_;
  const std::vector<std::string>& words_;
  uint64_t count_ = 0;  // of draws
};

}  // namespace braid::fuzz
