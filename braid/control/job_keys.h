// The keys derived from a job's token: the answer that authenticates a node, and the key of TLS. Neither reveals the
// token.
#pragma once

#include <array>
#include <span>
#include <string>

#include "braid/control/job_address.h"
#include "braid/control/job_token.h"

namespace braid::control {

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

}  // namespace braid::control
