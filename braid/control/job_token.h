// The secret token of a job, known only to its nodes: 64 hexadecimal digits, in a file that only its owner may read, or
// in an environment variable. No log or error contains any part of the token. Functions that read a token leave no copy
// of it in memory.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "braid/base/checked_file.h"
#include "braid/control/job_address.h"
#include "braid/control/secret.h"

namespace braid::control {

struct JobToken {
  Secret secret;
};

constexpr size_t kTokenDigits = 2 * Secret::kBytes;

// Writes the digits of a new random token. Throws RunError if the system has no random numbers.
void draw_token_digits(std::span<unsigned char, kTokenDigits> digits);
// Returns the digits of a new random token as text, to be shown to the user or written to a file.
std::string new_token_text();

// Reads a token from a file; white space before and after it is ignored. Throws ConfigError about `file.key` if the
// file cannot be read, is not a regular file, belongs to another user, may be read or written by others, or holds no
// token.
JobToken token_of_file(const NamedFile& file);
// Does the same with an open file, and closes it. A descriptor of -1 means that opening failed with errno.
JobToken token_of_descriptor(int descriptor, const NamedFile& file);
// Reads a token from the text that `key` was set to. Throws ConfigError about `key` if it is not a token.
JobToken token_of_text(const std::string& key, std::string_view text);

using AuthenticationBytes = std::array<char, 32>;

// The two ends of a connection to node 0.
struct JobConnection {
  SocketAddress node, root;  // the end of the node that connects, and node 0's end
};

// The keys derived from a job's token: the authentication key and the pre-shared key of TLS. Neither reveals the token,
// which is not kept. Both are in pages that a forked child does not have (secret.h), so a child must not use this.
class JobKeys {
 public:
  // Derives both keys by HKDF (RFC 5869) with SHA-256: the authentication key from the token, the TLS key from the
  // token and the attempt.
  JobKeys(const JobToken& token, int attempt);

  // Returns the answer that authenticates a node: HMAC-SHA-256 over a node's role, the attempt, both ends of the
  // connection and the nonce. The answer is not valid on any other connection.
  AuthenticationBytes authentication_answer(const AuthenticationBytes& nonce, const JobConnection& connection) const;
  // Fills `nonce` with random bytes. Returns false if the system has none.
  static bool draw(AuthenticationBytes& nonce);
  // Compares in constant time.
  static bool equal(const AuthenticationBytes& a, const AuthenticationBytes& b);

  const Secret& tls() const { return tls_; }
  // Returns the identity of the TLS key. It contains the attempt and is sent in clear text.
  const std::string& identity() const { return identity_; }

 private:
  std::string identity_;
  Secret gate_, tls_;
};

// Returns the folder of the token of jobs that stay on one host: /tmp/braid-UID. All processes of a host see /tmp.
// XDG_RUNTIME_DIR is not used, because some processes of a user lack it, such as those of cron and sshd. They would use
// another token.
std::string host_token_folder();

// Returns the token of jobs that stay on one host, from the file in `folder`. All such jobs of a user share this token;
// the address of node 0 distinguishes them. Creates the folder (mode 0700) and the file (mode 0600) if they are
// missing. Processes that do so at the same time get the same token.
//
// Throws ConfigError if the folder cannot be opened, is a link, belongs to another user or is open to others, or if
// token_of_file() would refuse the file. Throws IoError if the file cannot be created.
JobToken token_of_host(const std::string& folder);

}  // namespace braid::control
