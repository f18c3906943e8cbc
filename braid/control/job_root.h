// The JobControl of node 0. It receives the messages of all nodes and puts their broadcasts in one order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/control/acceptor.h"
#include "braid/control/heartbeat.h"
#include "braid/control/job_control.h"
#include "braid/control/job_reader.h"

namespace braid::control {

struct RootParts {
  std::unique_ptr<TlsContext> context;
  std::unique_ptr<Acceptor> reception;                // refuses late nodes, with a reason
  std::vector<std::unique_ptr<TlsConnection>> lines;  // by node; null for node 0 and failed nodes
  std::vector<JobNode> nodes;
  Heartbeat heartbeat;
};

class JobRoot final : public JobControl {
 public:
  explicit JobRoot(RootParts parts);
  ~JobRoot() override;

  int node() const override { return 0; }
  const std::vector<JobNode>& nodes() const override { return parts_.nodes; }
  void broadcast(const std::string& bytes) override;
  void report_progress(const std::string& bytes) override;
  void set_validator(MessageValidator validator) override { reader_.set_validator(std::move(validator)); }
  void fail_node(int node, const std::string& why) override;
  int watch(std::vector<pollfd>& watched) const override;
  std::vector<JobEvent> advance() override;
  void leave_to_child() override;

 private:
  void refuse_late();
  void receive(int node);
  void take(JobEvent event);
  void fail_lost_nodes();
  std::string loss(int node) const;
  void send_heartbeat();
  void tell_all(const Frame& frame);

  RootParts parts_;
  JobReader reader_;
  std::vector<PeerLiveness> lives_;
  std::vector<std::string> faults_;  // by node: the node's fault; empty if there is none
  std::vector<JobEvent> events_;
};

}  // namespace braid::control
