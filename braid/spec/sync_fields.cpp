// The fields of [sync].
#include "braid/spec/field_builders.h"
#include "braid/spec/fields.h"

namespace braid::spec {

std::vector<Field> sync_fields() {
  using namespace field_builders;
  using S = SyncSpec;
  return {
      sync<&S::replication>("sync.replication", one_of<ReplicationKind>(),
                            "How replicas are kept in step: gradients summed at every step (all-reduce), weights "
                            "averaged every sync.period steps (local-sgd), the same with an outer optimizer (diloco), "
                            "or gradients sent to servers that hold the weights (parameter-server)."),
      sync<&S::bucket_mb>("sync.bucket_mb", more_than(0),
                          "Size of a gradient bucket of the data axis, in MiB (2^20 bytes)."),
      sync<&S::first_bucket_mb>("sync.first_bucket_mb", more_than(0),
                                "Size of the bucket that is ready first in backward, in MiB (2^20 bytes)."),
      sync<&S::overlap>("sync.overlap", one_of<OverlapChoice>(),
                        "Whether a bucket leaves as soon as its gradients are complete (on) or after the backward pass "
                        "(off); \"auto\" measures both in the first steps and takes the faster."),
      sync<&S::tune_buckets>("sync.tune_buckets", one_of<OnOff>(),
                             "\"on\" measures several bucket sizes in the first steps and takes the fastest."),
      sync<&S::compression>(
          "sync.compression", one_of<CompressionKind>(),
          "What gradients become on the wire; the last four carry what was lost over to the next step."),
      sync<&S::compression_fraction>("sync.compression_fraction", RealRange{0, 1, Bound::Open, Bound::Closed},
                                     "Share of each parameter's gradient that top-k sends."),
      sync<&S::compression_rank>("sync.compression_rank", IntRange{1, 1024}, "Rank of power-sgd's factors."),
      sync<&S::compression_start>("sync.compression_start", at_least(0), "Steps before compression begins."),
      sync<&S::zero>("sync.zero", IntRange{0, 3},
                     "What the data ranks shard instead of holding copies: 1 the optimizer's states, 2 gradients "
                     "too, 3 parameters too."),
      sync<&S::zero_group>("sync.zero_group", at_least(0),
                           "Data ranks that shard one copy with their context ranks, neighbours on the data axis; 0: "
                           "all of them, with all expert ranks but for experts."),
      sync<&S::zero_gather>("sync.zero_gather", one_of<GatherUnit>(),
                            "Under sync.zero 3, whether each block is gathered just before it runs and freed after it "
                            "(block), or a whole stage for as long as the schedule needs it soon (stage), which takes "
                            "more memory and sends less."),
      sync<&S::period>("sync.period", at_least(1), "Steps between two synchronisations of local-sgd or diloco."),
      sync<&S::period_warmup>("sync.period_warmup", at_least(0),
                              "Steps with summed gradients before local-sgd or diloco begins."),
      sync<&S::outer_lr>("sync.outer_lr", more_than(0), "Learning rate of diloco's outer optimizer."),
      sync<&S::outer_momentum>("sync.outer_momentum", RealRange{0, 1, Bound::Closed, Bound::Open},
                               "Nesterov momentum of diloco's outer optimizer."),
      sync<&S::servers>(
          "sync.servers", IntRange{1, 64},
          "Servers over which the parameters of each pipeline and tensor rank are sharded, by key range."),
      sync<&S::servers_on>("sync.servers_on", one_of<ServersOn>(),
                           "Place of the servers: threads of the data ranks (ranks), or further ranks of the run "
                           "after those of the mesh (own)."),
      sync<&S::consistency>("sync.consistency", one_of<Consistency>(),
                            "Whether workers of a parameter server wait for all at every step (bsp), for those that "
                            "are more than sync.staleness steps behind (ssp), or never (asp)."),
      sync<&S::staleness>("sync.staleness", at_least(0),
                          "Steps by which a worker may be ahead of the slowest, in ssp."),
      sync<&S::push_every>("sync.push_every", at_least(1),
                           "Steps whose gradients a worker adds up before it sends them."),
      sync<&S::pull_every>("sync.pull_every", at_least(1), "Steps between two fetches of the parameters by a worker."),
  };
}

}  // namespace braid::spec
