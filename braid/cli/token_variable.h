// BRAID_TOKEN, the environment variable that gives a job's token.
#pragma once

namespace braid::cli {

constexpr const char* kTokenVariable = "BRAID_TOKEN";

// Returns the value in an entry "NAME=VALUE" of the environment if it sets the token, else null.
char* token_value(char* entry);

// Removes the variable from the environment and overwrites its value there. Ranks and the programs they start would
// inherit it.
void forget_token_variable();

}  // namespace braid::cli
