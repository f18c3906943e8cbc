// A manual page of all commands, in roff with the macros of man(7).
#pragma once

#include <string>

#include "braid/cli/command_page.h"

namespace braid::cli {

std::string manual_page(const CommandPage& braid);

}  // namespace braid::cli
