// Reads hexadecimal digits, and checks the mode of their file. Errors never contain the bytes that were read. The bytes
// of files are read and converted in a SecretPage.
#include "braid/control/job_token.h"

#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::control {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

std::optional<JobToken> token_of_digits(std::string_view digits) {
  if (digits.size() != kTokenDigits) return std::nullopt;
  JobToken token;
  for (size_t at = 0; at < digits.size(); ++at) {
    const int digit = OPENSSL_hexchar2int(static_cast<unsigned char>(digits[at]));
    if (digit < 0) return std::nullopt;
    unsigned char& byte = token.secret.bytes()[at / 2];
    byte = static_cast<unsigned char>(byte << 4 | digit);
  }
  return token;
}

// Returns why the file must not be used; empty if it may be used.
std::string refusal(int descriptor, const std::string& path) {
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) return cat("cannot be read: ", std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return "is no regular file";
  if (status.st_uid != ::geteuid()) return cat("belongs to user ", status.st_uid, ", not to user ", ::geteuid());
  if ((status.st_mode & 077) != 0) return cat("may be read or written by others: chmod 600 ", path);
  return "";
}

}  // namespace

void draw_token_digits(std::span<unsigned char, kTokenDigits> digits) {
  const Secret secret;
  if (RAND_bytes(secret.bytes().data(), static_cast<int>(Secret::kBytes)) != 1) {
    throw RunError("the system gives no random numbers");
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (size_t at = 0; at < digits.size(); ++at) {
    const unsigned char byte = secret.bytes()[at / 2];
    digits[at] = static_cast<unsigned char>(kDigits[at % 2 == 0 ? byte >> 4 : byte & 15]);
  }
}

std::string new_token_text() {
  const SecretPage page;
  const auto digits = page.bytes().first<kTokenDigits>();
  draw_token_digits(digits);
  return {digits.begin(), digits.end()};
}

JobToken token_of_file(const NamedFile& file) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  return token_of_descriptor(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), file);
}

JobToken token_of_descriptor(int descriptor, const NamedFile& file) {
  std::string fault = refusal(descriptor, file.path);
  std::optional<JobToken> token;
  if (fault.empty()) {
    const SecretPage page;
    const ssize_t bytes = ::read(descriptor, page.bytes().data(), page.bytes().size());
    if (bytes < 0) fault = cat("cannot be read: ", std::strerror(errno));
    const std::string_view text(reinterpret_cast<const char*>(page.bytes().data()), bytes > 0 ? size_t(bytes) : 0);
    token = token_of_digits(trimmed(text));
  }
  if (descriptor >= 0) ::close(descriptor);
  if (token) return std::move(*token);
  if (fault.empty()) fault = "does not hold 64 hexadecimal digits, and nothing else";
  throw ConfigError({{file.key, file.value, fault, ""}});
}

JobToken token_of_text(const std::string& key, std::string_view text) {
  if (auto token = token_of_digits(trimmed(text))) return std::move(*token);
  throw ConfigError({{key, "", "must be 64 hexadecimal digits (what it is set to is not shown)", ""}});
}

namespace {

constexpr std::string_view kSalt = "braid job control 1";
constexpr const char* kName = "braid";
constexpr const char* kNodeRole = "node of ";  // node 0 answers no nonce

OSSL_PARAM bytes_parameter(const char* name, std::string_view bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
}

Secret derived(const Secret& from, std::string_view info) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr), EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(EVP_KDF_CTX_new(kdf.get()), EVP_KDF_CTX_free);
  const std::string_view key(reinterpret_cast<const char*>(from.bytes().data()), Secret::kBytes);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                                   bytes_parameter(OSSL_KDF_PARAM_KEY, key),
                                   bytes_parameter(OSSL_KDF_PARAM_SALT, kSalt),
                                   bytes_parameter(OSSL_KDF_PARAM_INFO, info), OSSL_PARAM_construct_end()};
  Secret secret;
  check(EVP_KDF_derive(context.get(), secret.bytes().data(), Secret::kBytes, parameters) == 1, "HKDF failed");
  return secret;
}

}  // namespace

JobKeys::JobKeys(const JobToken& token, int attempt)
    : identity_(cat("braid attempt ", attempt)),
      gate_(derived(token.secret, "gate")),
      tls_(derived(token.secret, cat("tls ", attempt, " ", kName))) {}

AuthenticationBytes JobKeys::authentication_answer(const AuthenticationBytes& nonce,
                                                   const JobConnection& connection) const {
  std::string bytes = cat(kNodeRole, identity_, '\0', endpoint_bytes(connection.node), endpoint_bytes(connection.root));
  bytes.append(nonce.begin(), nonce.end());
  AuthenticationBytes answer;
  unsigned int length = 0;
  HMAC(EVP_sha256(), gate_.bytes().data(), static_cast<int>(Secret::kBytes),
       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
       reinterpret_cast<unsigned char*>(answer.data()), &length);
  check(length == answer.size(), "HMAC-SHA-256 failed");
  return answer;
}

bool JobKeys::draw(AuthenticationBytes& nonce) {
  return RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size())) == 1;
}

bool JobKeys::equal(const AuthenticationBytes& a, const AuthenticationBytes& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// The token file is written under a temporary name and then linked to its own. So no process reads half of it, and the
// first of several writers wins. No process removes the file, because another job may be about to read it.

namespace {

constexpr const char* kFileName = "token";

// An open folder. The destructor closes it.
class OpenFolder {
 public:
  explicit OpenFolder(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {}
  ~OpenFolder() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// Returns why the folder must not be used; empty if it may be used.
std::string folder_refusal(int descriptor) {
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) return cat("cannot be opened: ", std::strerror(errno));
  if (status.st_uid != ::geteuid()) return cat("belongs to user ", status.st_uid, ", not to user ", ::geteuid());
  if ((status.st_mode & 077) != 0) return "is open to other users";
  return "";
}

void make_token_file(const std::string& folder) {
  const SecretPage page;
  const auto digits = page.bytes().first<kTokenDigits>();
  draw_token_digits(digits);
  std::string path = folder + "/new.XXXXXX";
  const int descriptor = ::mkostemp(path.data(), O_CLOEXEC);  // O_EXCL, mode 0600
  if (descriptor < 0) throw IoError(path, -1, cat("cannot be made: ", std::strerror(errno)));
  const bool written = ::write(descriptor, digits.data(), digits.size()) == static_cast<ssize_t>(digits.size()) &&
                       ::fsync(descriptor) == 0;
  const bool there = written && (::link(path.c_str(), cat(folder, "/", kFileName).c_str()) == 0 || errno == EEXIST);
  const int error = errno;
  ::close(descriptor);
  ::unlink(path.c_str());
  if (!there) throw IoError(path, -1, cat("cannot be written: ", std::strerror(error)));
}

}  // namespace

std::string host_token_folder() { return cat("/tmp/braid-", ::geteuid()); }

JobToken token_of_host(const std::string& path) {
  ::mkdir(path.c_str(), 0700);  // opening the folder reports a failure
  const OpenFolder folder(path);
  const std::string fault = folder_refusal(folder.descriptor());
  if (!fault.empty()) {
    throw ConfigError(
        {{path, "", cat(fault, "; the token of jobs on this host would lie there: give --token-file"), ""}});
  }
  const auto opened = [&] {
    return ::openat(folder.descriptor(), kFileName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  };
  int descriptor = opened();
  if (descriptor < 0 && errno == ENOENT) {
    make_token_file(path);
    descriptor = opened();
  }
  const std::string file = cat(path, "/", kFileName);
  return token_of_descriptor(descriptor, {file, "", file});
}

}  // namespace braid::control
