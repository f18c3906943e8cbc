// The documents of a run: the list of its files in order, and the choice of those held out. Only paths, sizes and the
// beginnings of files are read.
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

// Paths in a folder that are not documents, by reason: "hidden" (the name begins with a dot), "binary" (not text,
// document_reader.h), "empty", "linked" (a link to a folder or to nothing), "special" (a pipe, a device, a socket), or
// a format that is not read ("gzip", file_format.h).
using PassedOver = std::map<std::string, std::set<std::string>>;

// Returns "passed over in folders: 1 binary (a/b.png), 2 hidden (a/.git, a/.x)", with at most ten paths per reason.
// Empty if nothing was passed over.
std::string sentence(const PassedOver& passed_over);
// Adds the paths of `more` to `all`.
void add_passed_over(PassedOver& all, const PassedOver& more);

struct DocumentList {
  std::vector<Document> documents;
  PassedOver passed_over;
};

// Returns true if the whole of `name` matches a pattern of `*` (any characters, also none) and `?` (any one character).
bool matches(std::string_view name, std::string_view pattern);

// Returns the documents of `spec.paths` in the order given.
// * The files of a folder are sorted by their path below it, as bytes: the order depends neither on the file system nor
//   on the folder's location.
// * A file reached twice counts once, at its first place. Otherwise it could be in both training and validation.
// * Files of folders that are not documents are passed over. Links to folders are not followed.
// * A file named by the user, and any .jsonl, is a document or is refused. The text of a named text file is not
//   checked.
// * `text_field` identifies JSON lines in a .json (file_format.h).
// * Throws ConfigError naming every entry that is missing, unreadable, without a match or all empty, and every refused
//   file.
DocumentList list_documents(const DataSpec& spec, const std::string& text_field = "text");

// Turns a problem about a key of [data] into one about the command line's `option`, for commands that read no
// configuration.
Problem of_option(const std::string& option, Problem problem);

// Returns for every document whether it is held out. Walks the documents in the order of a hash of their index, and
// takes each one that brings the bytes held out closer to `fraction` of all bytes. Holds out at least one document and
// never all. Holds out nothing if `fraction` is 0 or there is only one document.
std::vector<bool> held_out(const std::vector<Document>& documents, double fraction);

}  // namespace braid::tokenize
