// Several nodes of one job in one process, on loopback: joined by threads, then driven together by one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/control/join_job.h"
#include "braid/control/socket.h"

namespace braid {

inline control::SocketAddress loopback_at(int port) { return control::resolve({"127.0.0.1", port}).found.front(); }

// Returns a port of 127.0.0.1 on which nobody listens.
inline int free_port() {
  const control::Socket listener = control::Socket::listening("test", loopback_at(0));
  control::SocketAddress bound;
  bound.length = sizeof bound.storage;
  getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.length);
  return control::parse_job_address("test", control::text(bound)).port;
}

inline control::Socket dial(int port) {
  control::Socket socket = control::Socket::connecting(loopback_at(port));
  pollfd wanted{socket.descriptor(), POLLOUT, 0};
  poll(&wanted, 1, 10'000);
  return socket;
}

// `count` bytes, or those that came before the connection was closed.
inline std::string receive(control::Socket& socket, size_t count) {
  std::string bytes;
  const double until = now_seconds() + 10;
  while (bytes.size() < count && now_seconds() < until) {
    std::array<char, 256> part;
    const control::IoResult moved = socket.receive(std::span(part).first(std::min(part.size(), count - bytes.size())));
    bytes.append(part.data(), moved.bytes);
    if (!moved.closed.empty()) break;
    if (moved.bytes == 0) poll(nullptr, 0, 1);
  }
  return bytes;
}

inline const std::string kTestToken(64, 'a');

inline std::shared_ptr<const control::JobKeys> keys_of(const std::string& token, int attempt) {
  return std::make_shared<const control::JobKeys>(control::token_of_text("test", token), attempt);
}
inline std::shared_ptr<const control::JobKeys> test_keys() { return keys_of(kTestToken, 0); }

// Options under which failed nodes are found by other means than silence, unless a test shortens it.
inline std::vector<control::JoinOptions> job_options(int num_nodes) {
  std::vector<control::JoinOptions> all(static_cast<size_t>(num_nodes));
  const int port = free_port();
  for (int node = 0; node < num_nodes; ++node) {
    control::JoinOptions& options = all[node];
    options.node = node;
    options.num_nodes = num_nodes;
    options.root = {"127.0.0.1", port};
    options.keys = test_keys();
    options.self = {cat("h", node), 1 + node};
    options.heartbeat_seconds = 60;
  }
  return all;
}

// Options of a node that runs in a forked child, which does not have the keys of its parent (secret.h).
inline control::JoinOptions in_child(control::JoinOptions options) {
  options.keys = test_keys();
  return options;
}

// The result of each node: its control, or the error's text.
struct JoinedNodes {
  std::vector<std::unique_ptr<control::JobControl>> controls;
  std::vector<std::string> errors;
};

inline JoinedNodes join_each(const std::vector<control::JoinOptions>& all) {
  JoinedNodes joined{std::vector<std::unique_ptr<control::JobControl>>(all.size()),
                     std::vector<std::string>(all.size())};
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        joined.controls[i] = control::join_job(all[i]);
      } catch (const std::exception& error) {
        joined.errors[i] = error.what();
      }
    });
  }
  return threads.clear(), std::move(joined);
}

// Succeeds if `text` contains each of `parts`.
inline testing::AssertionResult holds(const std::string& text, const std::vector<std::string>& parts) {
  for (const auto& part : parts) {
    if (text.find(part) == std::string::npos)
      return testing::AssertionFailure() << "no \"" << part << "\" in: " << text;
  }
  return testing::AssertionSuccess();
}

// Returns the number after "within ", which is the time that was waited; nothing is -1.
inline double seconds_waited(const std::string& error) {
  const size_t at = error.find(" within ");
  return at == std::string::npos ? -1 : std::stod(error.substr(at + 8));
}

class NodesOfAJob {
 public:
  explicit NodesOfAJob(const std::vector<control::JoinOptions>& all) : heard(all.size()), held_(all.size()) {
    JoinedNodes joined = join_each(all);
    for (const auto& error : joined.errors) {
      if (!error.empty()) throw std::runtime_error(error);
    }
    controls_ = std::move(joined.controls);
  }

  control::JobControl& operator[](int node) { return *controls_[node]; }
  // It is driven no more, as a process that is stopped; and again.
  void hold(int node) { held_[node] = true; }
  void release(int node) { held_[node] = false; }
  void destroy(int node) { controls_[node].reset(); }
  std::unique_ptr<control::JobControl> take(int node) { return std::move(controls_[node]); }

  void advance() {
    std::vector<pollfd> watched;
    int milliseconds = 20;
    for (size_t node = 0; node < controls_.size(); ++node) {
      if (!controls_[node] || held_[node]) continue;
      milliseconds = std::min(milliseconds, controls_[node]->watch(watched));
    }
    poll(watched.data(), watched.size(), milliseconds);
    for (size_t node = 0; node < controls_.size(); ++node) {
      if (!controls_[node] || held_[node]) continue;
      for (control::JobEvent& event : controls_[node]->advance()) heard[node].push_back(std::move(event));
    }
  }
  // Until something is so, for which there is a minute.
  void advance_until(const std::function<bool()>& so) {
    const double until = now_seconds() + 60;
    while (!so() && now_seconds() < until) advance();
    EXPECT_TRUE(so()) << "did not happen";
  }
  void advance_for(double seconds) {
    const double until = now_seconds() + seconds;
    while (now_seconds() < until) advance();
  }

  // "said 1 word", "lost 2 was silent ...", in the order in which the node heard it.
  std::vector<std::string> words(int node, control::JobEvent::Kind kind) const {
    std::vector<std::string> words;
    for (const control::JobEvent& event : heard[node]) {
      if (event.kind == kind) words.push_back(cat(event.node, " ", event.bytes));
    }
    return words;
  }
  // Returns the reason of the only failure that the node received.
  std::string loss(int node) const {
    const auto losses = words(node, control::JobEvent::Kind::Lost);
    return losses.size() == 1 ? losses[0] : cat(losses.size(), " losses");
  }
  size_t num_heard(int node) const { return heard[node].size(); }

  std::vector<std::vector<control::JobEvent>> heard;

 private:
  std::vector<std::unique_ptr<control::JobControl>> controls_;
  std::vector<bool> held_;
};

// Returns the error of joining; empty if it succeeds.
inline std::string error_of(const control::JoinOptions& options) {
  try {
    control::join_job(options);
  } catch (const ConfigError& error) {
    return cat("config: ", error.what());
  } catch (const RunError& error) {
    return cat("run: ", error.what());
  }
  return "";
}

}  // namespace braid
