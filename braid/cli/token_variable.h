// BRAID_TOKEN, the environment variable that gives a job's token.
#pragma once

namespace braid::cli {

constexpr const char* kTokenVariable = "BRAID_TOKEN";

// The value in an entry "NAME=VALUE" of the environment that sets the token; null in any other entry.
char* token_value(char* entry);

// Removes the variable from the environment, which ranks and what they start inherit, and overwrites its value there.
void forget_token_variable();

}  // namespace braid::cli
