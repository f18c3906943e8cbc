// Authenticates connections to node 0. Node 0 sends each new connection a nonce of 32 random bytes. The peer must
// answer with 32 bytes that only a node of the job can compute; otherwise its connection is closed. An unauthenticated
// peer uses a descriptor and those 64 bytes. At most 64 such peers are held at a time, each for at most 5 s.
#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "braid/control/job_token.h"
#include "braid/control/socket.h"

namespace braid::control {

// The byte that node 0 sends after an answer: accepted or refused.
constexpr char kAccepted = 1, kRefused = 0;

class Authenticator {
 public:
  static constexpr size_t kMostPending = 64;
  // kAnswerSeconds is the deadline of an answer. When kMostPending connections wait and another arrives, the oldest is
  // dropped if it is older than kPatienceSeconds.
  static constexpr double kAnswerSeconds = 5, kPatienceSeconds = 0.25;

  Authenticator(Socket listener, std::shared_ptr<const JobKeys> keys);

  void watch(std::vector<pollfd>& watched) const;
  // Returns the time (now_seconds()) at which to call advance() even if no descriptor is ready.
  double due() const;
  // Reads answers, closes refused and late connections, and accepts new ones. Returns the connections that this call
  // has authenticated.
  std::vector<Socket> advance();

  size_t num_pending() const { return pending_.size(); }
  // Return the number of wrong answers so far, and the numeric address that sent the last.
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

  Answer receive(Pending& peer);
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
