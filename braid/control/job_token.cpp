// Hexadecimal digits, and the mode of the file that they are in. Errors never hold what was read.
#include "braid/control/job_token.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr size_t kMostBytesOfFile = 4096;

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::optional<JobToken> token_of_digits(std::string_view digits) {
  JobToken token;
  if (digits.size() != 2 * token.secret.bytes.size()) return std::nullopt;
  for (size_t i = 0; i < token.secret.bytes.size(); ++i) {
    const int high = hex_value(digits[2 * i]), low = hex_value(digits[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    token.secret.bytes[i] = static_cast<unsigned char>(16 * high + low);
  }
  return token;
}

// Why the file may not be used; empty when it may.
std::string refusal(int descriptor, const std::string& path) {
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) return cat("cannot be read: ", std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return "is no regular file";
  if (status.st_uid != ::geteuid()) return cat("belongs to user ", status.st_uid, ", not to user ", ::geteuid());
  if ((status.st_mode & 077) != 0) return cat("may be read or written by others: chmod 600 ", path);
  return "";
}

}  // namespace

std::string new_token_text() {
  Secret secret;
  if (::getrandom(secret.bytes.data(), secret.bytes.size(), 0) != static_cast<ssize_t>(secret.bytes.size())) {
    throw RunError(cat("the system gives no random numbers: ", std::strerror(errno)));
  }
  std::string text;
  for (unsigned char byte : secret.bytes) {
    text += kHexDigits[byte / 16];
    text += kHexDigits[byte % 16];
  }
  return text;
}

JobToken token_of_file(const NamedFile& file) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const int descriptor = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  std::string fault = refusal(descriptor, file.path), text(kMostBytesOfFile, '\0');
  if (fault.empty()) {
    const ssize_t bytes = ::read(descriptor, text.data(), text.size());
    if (bytes < 0) fault = cat("cannot be read: ", std::strerror(errno));
    text.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  }
  if (descriptor >= 0) ::close(descriptor);
  if (fault.empty()) {
    if (const auto token = token_of_digits(trimmed(text))) return *token;
    fault = "does not hold 64 hexadecimal digits, and nothing else";
  }
  throw ConfigError({{file.key, file.value, fault, ""}});
}

JobToken token_of_text(const std::string& key, const std::string& text) {
  if (const auto token = token_of_digits(trimmed(text))) return *token;
  throw ConfigError({{key, "", "must be 64 hexadecimal digits (what it is set to is not shown)", ""}});
}

}  // namespace braid
