// A check of a shared library's file before it is loaded. The loader maps the file without one, and a program that
// reads past the end of a mapped file dies of SIGBUS.
#pragma once

#include <string>

namespace braid {

// Returns "" if the file is a 64-bit ELF file and has all the bytes that its headers name. Otherwise returns the fault,
// "is cut short: it has 4096 of 24680 bytes".
std::string library_fault(const std::string& path);

}  // namespace braid
