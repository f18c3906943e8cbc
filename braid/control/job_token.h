// The secret of a job, which its nodes know and strangers do not: 64 hexadecimal digits, in a file that only its owner
// may read, or in a variable. Nothing prints it, and no error holds any of it. It does not know how it is used.
#pragma once

#include <string>

#include "braid/base/named_file.h"
#include "braid/control/secret.h"

namespace braid {

struct JobToken {
  Secret secret;
};

// A new one, from the system's random numbers, as text. Throws RunError when the system has none.
std::string new_token_text();

// What a file says, with or without white space at its ends. Throws ConfigError about `file.key` where the file cannot
// be read, is no regular file, belongs to somebody else than this process's user, may be read or written by others, or
// holds something else.
JobToken token_of_file(const NamedFile& file);
// The same of text that `key` was set to.
JobToken token_of_text(const std::string& key, const std::string& text);

}  // namespace braid
