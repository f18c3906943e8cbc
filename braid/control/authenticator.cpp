// Keeps the peers that have not answered, in the order in which they connected.
#include "braid/control/authenticator.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "braid/base/clock.h"

namespace braid::control {
namespace {

constexpr double kWithoutDescriptorsSeconds = 0.1;  // time until the next accept

}  // namespace

Authenticator::Authenticator(Socket listener, std::shared_ptr<const JobKeys> keys)
    : listener_(std::move(listener)), keys_(std::move(keys)) {
  pending_.reserve(kMostPending);
}

void Authenticator::watch(std::vector<pollfd>& watched) const {
  const double now = now_seconds();
  const bool room = pending_.size() < kMostPending || now - pending_.front().since > kPatienceSeconds;
  if (room && now >= no_descriptors_until_) watched.push_back({listener_.descriptor(), POLLIN, 0});
  for (const Pending& peer : pending_) watched.push_back({peer.socket.descriptor(), POLLIN, 0});
}

double Authenticator::due() const {
  double due = std::numeric_limits<double>::infinity();
  if (no_descriptors_until_ > now_seconds()) due = no_descriptors_until_;
  if (pending_.empty()) return due;
  const bool full = pending_.size() == kMostPending;
  return std::min(due, pending_.front().since + (full ? kPatienceSeconds : kAnswerSeconds));
}

std::vector<Socket> Authenticator::advance() {
  std::vector<Socket> let_in;
  const double now = now_seconds();
  std::erase_if(pending_, [&](Pending& peer) {
    const Answer answer = receive(peer);
    if (answer == Answer::Right) let_in.push_back(std::move(peer.socket));
    return answer != Answer::Awaited || now - peer.since > kAnswerSeconds;
  });
  accept();
  return let_in;
}

Authenticator::Answer Authenticator::receive(Pending& peer) {
  const auto missing = std::span(peer.answer).subspan(peer.received);
  const IoResult moved = peer.socket.receive(missing);
  if (!moved.closed.empty()) return Answer::Gone;
  peer.received += moved.bytes;
  if (peer.received < peer.answer.size()) return Answer::Awaited;
  const JobConnection connection{peer.socket.peer_end(), peer.socket.own_end()};
  const bool right = JobKeys::equal(peer.answer, keys_->authentication_answer(peer.nonce, connection));
  const char verdict = right ? kAccepted : kRefused;
  const bool told = peer.socket.send({&verdict, 1}).bytes == 1;
  if (right) return told ? Answer::Right : Answer::Gone;
  ++num_refused_;
  last_refused_ = peer.socket.peer();
  return Answer::Gone;
}

// Accepts a bounded number of connections per call, so that authenticated peers are served meanwhile.
void Authenticator::accept() {
  const double now = now_seconds();
  if (now < no_descriptors_until_) return;
  for (size_t count = 0; count < kMostPending && make_room(); ++count) {
    Pending peer{listener_.accept(), now};
    if (!peer.socket) {
      const bool nobody = errno == EAGAIN || errno == EWOULDBLOCK;
      if (!nobody) no_descriptors_until_ = now + kWithoutDescriptorsSeconds;
      return;
    }
    if (!JobKeys::draw(peer.nonce)) continue;
    if (peer.socket.send(peer.nonce).bytes < peer.nonce.size()) continue;
    pending_.push_back(std::move(peer));
  }
}

bool Authenticator::make_room() {
  if (pending_.size() < kMostPending) return true;
  if (now_seconds() - pending_.front().since <= kPatienceSeconds) return false;
  pending_.erase(pending_.begin());
  return true;
}

}  // namespace braid::control
