// One kind of change after another, drawn by the counter-based generator.
#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "braid/base/seeds.h"
#include "braid/base/text.h"

namespace braid::fuzz {
namespace {

constexpr std::array<uint64_t, 12> kNumbers{0,
                                            1,
                                            127,
                                            255,
                                            0x7FFF,
                                            0xFFFF,
                                            0x7FFFFFFF,
                                            0xFFFFFFFF,
                                            uint64_t{1} << 53,
                                            ~uint64_t{0},
                                            ~uint64_t{0} >> 1,
                                            uint64_t{1} << 63};

}  // namespace

size_t Mutator::draw(size_t count) {
  return count == 0 ? 0 : static_cast<size_t>(random_bits(seed_, count_++) % count);
}

std::string Mutator::changed(std::string input, const std::string& other) {
  const size_t times = size_t{1} << draw(4);
  for (size_t i = 0; i < times; ++i) change(input, other);
  input.resize(std::min(input.size(), kMostBytes));
  return input;
}

void Mutator::change(std::string& input, const std::string& other) {
  switch (draw(8)) {
    case 0:
    case 1:
      return change_bytes(input);
    case 2:
    case 3:
      return move_bytes(input);
    case 4:
      return put(input, cat(kNumbers[draw(kNumbers.size())]));
    case 5: {
      const size_t begin = draw(other.size());
      return put(input, other.substr(begin, draw(64)));
    }
    default:
      return put(input, words_.empty() ? "" : words_[draw(words_.size())]);
  }
}

// In place of as many bytes, or between two.
void Mutator::put(std::string& input, const std::string& text) {
  const size_t at = draw(input.size() + 1);
  input.replace(at, draw(2) * std::min(text.size(), input.size() - at), text);
}

void Mutator::change_bytes(std::string& input) {
  if (input.empty()) return input.push_back(static_cast<char>(draw(256)));
  const size_t at = draw(input.size());
  switch (draw(4)) {
    case 0:
      input[at] = static_cast<char>(draw(256));
      break;
    case 1:
      input[at] = static_cast<char>(input[at] ^ (1 << draw(8)));
      break;
    case 2:
      input[at] = static_cast<char>(input[at] + static_cast<int>(draw(33)) - 16);
      break;
    default: {
      const uint64_t number = kNumbers[draw(kNumbers.size())];
      std::memcpy(input.data() + at, &number, std::min(input.size() - at, size_t{1} << draw(4)));
    }
  }
}

void Mutator::move_bytes(std::string& input) {
  const size_t at = draw(input.size() + 1), length = draw(std::min(input.size() - at, size_t{256}) + 1);
  const std::string part = input.substr(at, length);
  switch (draw(4)) {
    case 0:
      input.erase(at, length);
      break;
    case 1:
      input.insert(draw(input.size() + 1), part);
      break;
    case 2:
      input.resize(at);
      break;
    default:  // many times over: what is read by recursion, or by nested loops, shows here
      for (size_t i = draw(200); i > 0 && input.size() < kMostBytes; --i) input.insert(at, part);
  }
}

}  // namespace braid::fuzz
