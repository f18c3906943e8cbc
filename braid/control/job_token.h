// The secret of a job, which its nodes know and nobody else does: 64 hexadecimal digits, in a file that only its owner
// may read, or in a variable. Nothing prints it, no error holds any of it, and no copy of it is left in memory.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "braid/base/named_file.h"
#include "braid/control/secret.h"

namespace braid::control {

struct JobToken {
  Secret secret;
};

constexpr size_t kTokenDigits = 2 * Secret::kBytes;

// Writes the digits of a new token, from the system's random numbers. Throws RunError when the system has none.
void draw_token_digits(std::span<unsigned char, kTokenDigits> digits);
// The same as text, for whoever shows it to the user.
std::string new_token_text();

// Reads a token from a file, with or without white space at its ends. Throws ConfigError about `file.key` if the file
// cannot be read, is no regular file, belongs to another user, may be read or written by others, or holds no token.
JobToken token_of_file(const NamedFile& file);
// The same of a file that is open, which it closes; -1: opening has failed, as errno says.
JobToken token_of_descriptor(int descriptor, const NamedFile& file);
// The same of text that `key` was set to.
JobToken token_of_text(const std::string& key, std::string_view text);

}  // namespace braid::control
