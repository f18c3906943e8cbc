// The secret of a job, which its nodes know and nobody else does: 64 hexadecimal digits, in a file that only its owner
// may read, or in a variable. Nothing prints it, no error holds any of it, and no copy of it is left in memory.
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

// Writes the digits of a new token, from the system's random numbers. Throws RunError when the system has none.
void draw_token_digits(std::span<unsigned char, kTokenDigits> digits);
// The same as text, for whoever shows it to the user.
std::string new_token_text();

// Reads a token from a file, with or without white space at its ends. Throws ConfigError about `file.key` if the file
// cannot be read, is no regular file, belongs to another user, may be read or written by others, or holds no token.
JobToken token_of_file(const NamedFile& file);
// The same of a file that is open, which it closes; -1: opening has failed, as errno says.
JobToken token_of_descriptor(int descriptor, const NamedFile& file);
// The same of text that `key` was set to.
JobToken token_of_text(const std::string& key, std::string_view text);

// The keys derived from a job's token: the answer that authenticates a node, and the key of TLS. Neither reveals the
// token.

using AuthenticationBytes = std::array<char, 32>;

// The two ends of a connection to node 0.
struct JobConnection {
  SocketAddress node, root;  // who dials, and where it is answered
};

// Holds two secrets (secret.h): a forked child must not use it. Does not keep the token.
class JobKeys {
 public:
  // Both by HKDF (RFC 5869) with SHA-256: the gate's from the token, that of TLS from token and attempt.
  JobKeys(const JobToken& token, int attempt);

  // HMAC-SHA-256 over the role of a node, the attempt, both ends of its connection and the nonce: an answer is of no
  // use on any other connection.
  AuthenticationBytes gate_answer(const AuthenticationBytes& nonce, const JobConnection& connection) const;
  // Random bytes; false where the system has none.
  static bool draw(AuthenticationBytes& nonce);
  // In a time that does not tell where two differ.
  static bool equal(const AuthenticationBytes& a, const AuthenticationBytes& b);

  const Secret& tls() const { return tls_; }
  // The name of the key of TLS, sent in clear text: it says the attempt.
  const std::string& identity() const { return identity_; }

 private:
  std::string identity_;
  Secret gate_, tls_;
};

// The token of jobs that stay on one host, which their commands make themselves: a file that only their user may read.
// All such jobs of a user share it; what they are told apart by is the address of node 0 (job_token.h).

// The folder of the file, named for the user's number: in /tmp, which all processes of a host see. XDG_RUNTIME_DIR is
// set for some of a user's processes and not for others, such as those of cron and sshd: they would have two tokens.
std::string host_token_folder();

// The token in `folder`. Makes the folder (mode 0700) and the file (mode 0600) where they are missing; of processes
// that do so at the same time all get the same token. Throws ConfigError where the folder is a link, belongs to
// somebody else or is open to others, or the file is unfit as token_of_file() says; IoError where they cannot be made.
JobToken token_of_host(const std::string& folder);

}  // namespace braid::control
