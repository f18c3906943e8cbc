// Text to tokens and back.
// It knows no files: a corpus reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int vocab() const = 0;
  virtual int end_of_text() const = 0;
  virtual std::vector<int> encode(std::string_view text) const = 0;
  // End-of-text gives no characters.
  virtual std::string decode(const std::vector<int>& tokens) const = 0;
};

// Bytes 0..255 are tokens 0..255; 256 is end-of-text.
std::unique_ptr<Tokenizer> byte_tokenizer();

// By DataSpec::tokenizer. Throws ConfigError naming the nearest when there is none of that name.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name);

}  // namespace braid
