// The JobControl of every node but node 0. It has one connection, to node 0.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/control/acceptor.h"
#include "braid/control/heartbeat.h"
#include "braid/control/job_control.h"
#include "braid/control/job_reader.h"
#include "braid/control/tls_connection.h"

namespace braid::control {

struct MemberParts {
  std::unique_ptr<TlsContext> context;
  std::unique_ptr<TlsConnection> line;
  int node = 0;
  std::vector<JobNode> nodes;
  Heartbeat heartbeat;
};

class JobMember final : public JobControl {
 public:
  explicit JobMember(MemberParts parts);
  ~JobMember() override;

  int node() const override { return parts_.node; }
  const std::vector<JobNode>& nodes() const override { return parts_.nodes; }
  void broadcast(const std::string& bytes) override;
  void report_progress(const std::string& bytes) override;
  void set_validator(MessageValidator validator) override { reader_.set_validator(std::move(validator)); }
  int watch(std::vector<pollfd>& watched) const override;
  std::vector<JobEvent> advance() override;
  void leave_to_child() override { parts_.line.reset(); }

 private:
  void receive();
  void send_heartbeat();
  void take_loss(int node, const std::string& why);

  MemberParts parts_;
  JobReader reader_;
  PeerLiveness root_;
  std::optional<std::string> progress_;
  std::vector<JobEvent> events_;
};

}  // namespace braid::control
