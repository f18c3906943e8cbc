// OpenSSL's HKDF and HMAC.
#include "braid/control/job_keys.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>

#include <memory>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::control {
namespace {

constexpr std::string_view kSalt = "braid job control 1";
constexpr const char* kName = "braid";
constexpr const char* kNodeRole = "node of ";  // node 0 answers nothing

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

AuthenticationBytes JobKeys::gate_answer(const AuthenticationBytes& nonce, const JobConnection& connection) const {
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

}  // namespace braid::control
