// The door of node 0: who connects is sent 32 random bytes and answers with 32 that only a node of the job can make, or
// is closed. Strangers take a descriptor and those 64 bytes, for a short while, and no more than 64 of them at a time.
#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "braid/control/job_token.h"
#include "braid/control/socket.h"

namespace braid::control {

// The byte that tells the answer's sender.
constexpr char kGateOpen = 1, kGateShut = 0;

class Authenticator {
 public:
  static constexpr size_t kMostPending = 64;
  // The deadline of an answer. When all places are taken, a connection older than kPatienceSeconds is dropped for a new
  // one.
  static constexpr double kAnswerSeconds = 5, kPatienceSeconds = 0.25;

  Authenticator(Socket listener, std::shared_ptr<const JobKeys> keys);

  void watch(std::vector<pollfd>& watched) const;
  // The seconds of the clock at which to call advance() though nothing is heard.
  double due() const;
  // Lets in, and closes. The connections of those who have been let in.
  std::vector<Socket> advance();

  size_t num_pending() const { return pending_.size(); }
  // Wrong answers so far, and where the last came from.
  int num_refused() const { return num_refused_; }
  const std::string& last_refused() const { return last_refused_; }

 private:
  struct Pending {
    Socket socket;
    double since = 0;
    AuthenticationBytes nonce{}, answer{};
    size_t received = 0;
  };
  enum class Answer { Awaited, Right, Gone };

  Answer hear(Pending& stranger);
  void accept();
  bool make_room();

  Socket listener_;
  std::shared_ptr<const JobKeys> keys_;
  std::vector<Pending> pending_;  // oldest first
  double no_descriptors_until_ = 0;
  int num_refused_ = 0;
  std::string last_refused_;
};

}  // namespace braid::control
