// A bound, and the reason in the user's terms.
#include "braid/base/named_file.h"

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

constexpr int64_t kMostBytesNamed = int64_t{1} << 28;

}  // namespace

std::string named_file_content(const NamedFile& file) {
  try {
    return file_content(file.path, kMostBytesNamed);
  } catch (const IoError& error) {
    throw ConfigError({{file.key, file.value, cat("cannot be read (", error.what(), ")"), ""}});
  }
}

}  // namespace braid
