// The dims of tensors in named letters, and the extents of the letters.
//
//   bt(kmd)         three dims. The last is merged of k, m and d; k is the major letter.
//   [kmd|kd|kd]c    two dims. The first has segments one after another: queries, keys and values in one buffer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::model {

// A dim. Each segment is a product of letters, and its first letter is the major one.
struct Dim {
  std::vector<std::string> segments;
  bool operator==(const Dim&) const = default;
};
using Dims = std::vector<Dim>;

// Throws ConfigError with the mistake of a graph that a program describes if `holds` is false.
void check_graph(bool holds, std::string_view rule);

// Reads dims in the notation above. Throws ConfigError if `text` does not follow it.
Dims dims_of(std::string_view text);
// Returns the notation of `dims`. dims_of() reads it back.
std::string text_of(const Dims& dims);

// The letters that the tensor axis splits: heads of keys and values with their queries, features of the feed-forward
// branch, and the vocabulary (Extents::split_over). Source: Shoeybi et al., "Megatron-LM" (2019), section 3.
inline constexpr std::string_view kTensorLetters = "kfv";

// The extent of each letter, which need not be whole: rows of experts are an expected number. A transformer has these
// letters:
//
//   b   sequences                      f   features of a feed-forward branch
//   t   tokens of a sequence           v   entries of the vocabulary
//   c   features of the hidden state   p   positions
//   k   heads of keys and values       e   experts
//   m   heads of queries for each k    r   rows of all experts: a token has one for each expert that it goes to
//   d   features of a head             s   scores of experts, one for each
//   g   types of tokens                j   tokens of a sequence whose logits are computed
class Extents {
 public:
  double& operator[](char letter) { return of_letter_[letter - 'a']; }
  double operator[](char letter) const { return of_letter_[letter - 'a']; }

  // Returns the product of the letters' extents.
  double of(std::string_view letters) const {
    double product = 1;
    for (const char letter : letters) product *= (*this)[letter];
    return product;
  }
  // Divides the letters that `ranks` tensor ranks split. Ranks beyond the key heads split each one's queries, m.
  void split_over(int ranks);
  double of(const Dim& dim) const;  // the sum over its segments
  double num_elements(const Dims& dims) const;
  std::vector<int64_t> shape(const Dims& dims) const;
  std::vector<int64_t> segments(const Dim& dim) const;

 private:
  std::array<double, 26> of_letter_{};
};

}  // namespace braid::model
