// One loop: sleep until a pipe or a signal says something, read, bury, kill who is late. A pipe's end comes with its
// process's death, unless that left children of its own; so the dead are also looked for now and then.
#include "braid/launch/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/launch/carried_error.h"

namespace braid {
namespace {

constexpr int kLookMilliseconds = 50;   // while nothing is said
constexpr int kLingerMilliseconds = 1;  // between a pipe's end and its process's

std::string end_of(int status) {
  if (WIFSIGNALED(status)) return cat("killed by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return cat("exited with code ", WEXITSTATUS(status), " before its function had ended");
}

}  // namespace

Supervisor::~Supervisor() {
  send(SIGKILL);
  for (Child& child : children_) {
    while (child.alive && waitpid(child.process, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (child.pipe >= 0) close(child.pipe);
  }
}

void Supervisor::add(pid_t process, int pipe) {
  fcntl(pipe, F_SETFL, O_NONBLOCK);
  children_.push_back({process, pipe});
}

void Supervisor::run() {
  while (std::ranges::any_of(children_, &Child::alive)) {
    sleep();
    for (int signal : signals_.take()) send(signal);
    for (int rank = 0; rank < static_cast<int>(children_.size()); ++rank) bury(rank);
    kill_late();
  }
}

void Supervisor::leave_to_child() {
  for (Child& child : children_) close(child.pipe);
  children_.clear();
}

void Supervisor::sleep() {
  std::vector<pollfd> watched{{signals_.descriptor(), POLLIN, 0}};
  int limit = kLookMilliseconds;
  for (const Child& child : children_) {
    if (child.pipe >= 0) watched.push_back({child.pipe, POLLIN, 0});
    if (child.pipe < 0 && child.alive) limit = kLingerMilliseconds;
  }
  poll(watched.data(), watched.size(), limit);
}

void Supervisor::bury(int rank) {
  Child& child = children_[rank];
  if (!child.alive) return;
  int status = 0;
  const bool dead = waitpid(child.process, &status, WNOHANG) == child.process;
  read_from(child);  // after its death is known: then all it has written is there
  if (!dead) return;
  child.alive = false;
  if (child.pipe >= 0) close(child.pipe);
  child.pipe = -1;
  if (!CarriedError::complete(child.message)) world_.fail({rank, rank, end_of(status)});
}

void Supervisor::read_from(Child& child) {
  char some[4096];
  while (child.pipe >= 0) {
    const ssize_t count = read(child.pipe, some, sizeof some);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    if (count == 0) {  // or sleep() would not
      close(child.pipe);
      child.pipe = -1;
      return;
    }
    child.message.append(some, static_cast<size_t>(count));
  }
}

void Supervisor::kill_late() {
  if (!world_.failed()) return;
  if (failed_at_ < 0) failed_at_ = now_seconds();
  if (now_seconds() - failed_at_ > grace_seconds_) send(SIGKILL);
}

void Supervisor::send(int signal) {
  for (const Child& child : children_) {
    if (child.alive) kill(child.process, signal);
  }
}

}  // namespace braid
