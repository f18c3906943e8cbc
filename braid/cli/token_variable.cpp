// Overwrites the token in the environment's own memory, because unsetenv() leaves the value there.
#include "braid/cli/token_variable.h"

#include <unistd.h>  // environ

#include <cstdlib>
#include <cstring>

namespace braid::cli {

char* token_value(char* entry) {
  const size_t length = std::strlen(kTokenVariable);
  return std::strncmp(entry, kTokenVariable, length) == 0 && entry[length] == '=' ? entry + length + 1 : nullptr;
}

void forget_token_variable() {
  for (char** entry = environ; *entry; ++entry) {
    if (char* const value = token_value(*entry)) explicit_bzero(value, std::strlen(value));
  }
  unsetenv(kTokenVariable);
}

}  // namespace braid::cli
