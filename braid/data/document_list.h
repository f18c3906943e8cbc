// Which files are the documents of a run, in which order, and which of them are held out.
// It does not open them: it knows paths and sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/spec/data_spec.h"

namespace braid {

struct Document {
  std::string path;
  int64_t bytes = 0;
};

// Whether a whole file name matches a pattern of `*` (any characters, also none) and `?` (any one character).
bool matches(std::string_view name, std::string_view pattern);

// The entries of `spec.paths` in the order given; the files of a folder sorted by their path below it, as bytes, so the
// order is the same whatever the file system returns and wherever the folder lies. A file reached twice counts once, at
// its first place (else it could be in both training and validation). Empty files are skipped. Links to folders are
// not followed. Throws ConfigError naming every entry that is missing, unreadable, without a match or all empty.
std::vector<Document> list_documents(const DataSpec& spec);

// For every document, whether it is held out. Walks the documents in the order of a hash of their index and takes each
// that brings the bytes held out closer to `fraction` of all: at least one document, and never all of them. Holds out
// nothing when `fraction` is 0 or there is one document only.
std::vector<bool> held_out(const std::vector<Document>& documents, double fraction);

}  // namespace braid
