// Which files are the documents of a run, in which order, and which of them are held out.
// It knows paths, sizes and whether a file's beginning is text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/errors.h"
#include "braid/spec/data_spec.h"

namespace braid {

struct Document {
  std::string path;
  int64_t bytes = 0;
};

// What folders hold beside documents.
struct PassedOver {
  int64_t hidden = 0;  // files and folders whose names begin with a dot
  int64_t binary = 0;  // files that are no text (text_check.h)
};

// "passed over in folders: 2 hidden, 1 binary"; empty when nothing was.
std::string sentence(const PassedOver& passed_over);

struct DocumentList {
  std::vector<Document> documents;
  PassedOver passed_over;
};

// Whether a whole file name matches a pattern of `*` (any characters, also none) and `?` (any one character).
bool matches(std::string_view name, std::string_view pattern);

// The entries of `spec.paths` in the order given; the files of a folder sorted by their path below it, as bytes, so the
// order is the same whatever the file system returns and wherever the folder lies. A file reached twice counts once, at
// its first place (else it could be in both training and validation). Empty files are left out, and in folders hidden
// and binary ones; what is named itself is taken as it is. Links to folders are not followed. Throws ConfigError naming
// every entry that is missing, unreadable, without a match or all empty.
DocumentList list_documents(const DataSpec& spec);

// A problem of a key of [data] as one of the command line's `option`, for commands that read no configuration.
Problem of_option(const std::string& option, Problem problem);

// For every document, whether it is held out. Walks the documents in the order of a hash of their index and takes each
// that brings the bytes held out closer to `fraction` of all: at least one document, and never all of them. Holds out
// nothing when `fraction` is 0 or there is one document only.
std::vector<bool> held_out(const std::vector<Document>& documents, double fraction);

}  // namespace braid
