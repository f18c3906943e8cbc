// The segments and the table of sections of an ELF file (elf(5)). Linkers write the table of sections last.
#include "braid/base/library_file.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>

#include "braid/base/text.h"

namespace braid {
namespace {

// Returns false if the file ends before `at` + sizeof(Header).
template <class Header>
bool read_header(std::ifstream& file, uint64_t at, Header& header) {
  if (at > static_cast<uint64_t>(std::numeric_limits<std::streamoff>::max())) return false;
  file.seekg(static_cast<std::streamoff>(at));
  return static_cast<bool>(file.read(reinterpret_cast<char*>(&header), sizeof header));
}

}  // namespace

std::string library_fault(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "cannot be read";
  const auto size = static_cast<uint64_t>(file.tellg());
  Elf64_Ehdr elf;
  if (!read_header(file, 0, elf)) return cat("is cut short: it has ", counted(static_cast<int64_t>(size), "byte"));
  if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
      elf.e_phentsize != sizeof(Elf64_Phdr)) {
    return "is no shared library of this machine";
  }
  uint64_t needed = std::max(elf.e_shoff + uint64_t{elf.e_shnum} * elf.e_shentsize,
                             elf.e_phoff + uint64_t{elf.e_phnum} * elf.e_phentsize);
  for (uint64_t segment = 0; segment < elf.e_phnum; ++segment) {
    Elf64_Phdr header;
    if (!read_header(file, elf.e_phoff + segment * sizeof header, header)) break;  // `needed` is beyond the end
    needed = std::max(needed, header.p_offset + header.p_filesz);
  }
  return size < needed ? cat("is cut short: it has ", size, " of ", needed, " bytes") : "";
}

}  // namespace braid
