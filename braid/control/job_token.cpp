// Hexadecimal digits, and the mode of the file that they are in. Errors never hold what was read.
#include "braid/control/job_token.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

constexpr size_t kMostBytesOfFile = 4096;

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1));
}

std::optional<JobToken> token_of_digits(const std::string& digits) {
  JobToken token;
  auto& bytes = token.secret.bytes;
  size_t length = 0;
  const bool read = OPENSSL_hexstr2buf_ex(bytes.data(), bytes.size(), &length, digits.c_str(), '\0') == 1;
  if (!read || length != bytes.size() || digits.size() != 2 * length) return std::nullopt;
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
  if (RAND_bytes(secret.bytes.data(), static_cast<int>(secret.bytes.size())) != 1) {
    throw RunError("the system gives no random numbers");
  }
  char digits[2 * secret.bytes.size() + 1];
  OPENSSL_buf2hexstr_ex(digits, sizeof digits, nullptr, secret.bytes.data(), secret.bytes.size(), '\0');
  return lower_case(digits);
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
