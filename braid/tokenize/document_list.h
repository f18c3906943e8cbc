// The documents of a run: its files in their order, and those held out.
// It knows paths, sizes and whether a file's beginning is text.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/errors.h"
#include "braid/spec/data_spec.h"
#include "braid/tokenize/file_format.h"

namespace braid::tokenize {

struct Document {
  std::string path;
  int64_t bytes = 0;
  FileFormat format = FileFormat::Text;  // or JsonLines
};

// Paths that a folder holds beside documents, by the reason: "hidden" (the name begins with a dot), "binary" (not text,
// document_reader.h), "empty", "linked" (a link to a folder or to nothing), "special" (a pipe, a device, a socket), or
// a format that is not read ("gzip", file_format.h).
using PassedOver = std::map<std::string, std::set<std::string>>;

// "passed over in folders: 1 binary (a/b.png), 2 hidden (a/.git, a/.x)", with at most ten paths per reason; empty when
// nothing was.
std::string sentence(const PassedOver& passed_over);
// Adds the paths of `more` to `all`.
void add_passed_over(PassedOver& all, const PassedOver& more);

struct DocumentList {
  std::vector<Document> documents;
  PassedOver passed_over;
};

// Returns true if a whole file name matches a pattern of `*` (any characters, also none) and `?` (any one character).
bool matches(std::string_view name, std::string_view pattern);

// The entries of `spec.paths` in the order given; the files of a folder sorted by their path below it, as bytes, so the
// order is the same whatever the file system returns and wherever the folder lies. A file reached twice counts once, at
// its first place (else it could be in both training and validation). Files of folders that are not documents are
// passed over; links to folders are not followed. A named file, and any .jsonl, is a document or refused; what a named
// file of text holds is not judged. `text_field` tells JSON lines in a .json (file_format.h). Throws ConfigError naming
// every entry that is missing, unreadable, without a match or all empty, and every file that is refused.
DocumentList list_documents(const DataSpec& spec, const std::string& text_field = "text");

// A problem of a key of [data] as one of the command line's `option`, for commands that read no configuration.
Problem of_option(const std::string& option, Problem problem);

// For every document, whether it is held out. Walks the documents in the order of a hash of their index and takes each
// that brings the bytes held out closer to `fraction` of all: at least one document, and never all of them. Holds out
// nothing when `fraction` is 0 or there is one document only.
std::vector<bool> held_out(const std::vector<Document>& documents, double fraction);

}  // namespace braid::tokenize
