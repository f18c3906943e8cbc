// The rules between fields.
#include "braid/spec/cross_rules.h"

#include <algorithm>
#include <bit>

#include "braid/base/text.h"
#include "braid/model/families.h"
#include "braid/model/shape.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/fields.h"

namespace braid::spec {
namespace {

constexpr int kByteTokens = 257;  // 256 bytes and end-of-text

bool power_of_two(int64_t n) { return n > 0 && std::has_single_bit(static_cast<uint64_t>(n)); }
bool reproducible(const RunSpec& spec) { return spec.train.reduction == Reduction::Reproducible; }

std::string ranks_text(const View& at) {
  const auto& mesh = at.spec.mesh;
  std::string others;
  if (mesh.context > 1) others += cat(" x context ", mesh.context);
  if (mesh.expert > 1) others += cat(" x expert ", mesh.expert);
  return cat("must leave at most ", counted(at.limits.all_ranks(), "rank"), " on ",
             at.limits.num_hosts == 1 ? "this host" : "these hosts", " (pipe ", mesh.pipe, " x data ", mesh.data,
             " x tensor ", mesh.tensor, others, " = ", num_ranks(mesh), ")");
}

// The axis to blame for too many ranks: data if fewer replicas are enough, else the largest of context, tensor, pipe.
enum class Blame { Data, Context, Tensor, Pipe };
Blame blame(const View& at) {
  MeshSpec mesh = at.spec.mesh;
  mesh.data = 1;
  if (num_ranks(mesh) <= at.limits.all_ranks()) return Blame::Data;
  if (mesh.context > std::max(mesh.tensor, mesh.pipe)) return Blame::Context;
  return mesh.tensor > mesh.pipe ? Blame::Tensor : Blame::Pipe;
}

CrossRule too_many_ranks(const char* key, Blame who) {
  return {{key, "mesh.pipe", "mesh.data", "mesh.context", "mesh.tensor"},
          [who](const View& at) { return num_ranks(at.spec.mesh) <= at.limits.all_ranks() || blame(at) != who; },
          ranks_text};
}

std::vector<CrossRule> mesh_rules() {
  return {
      {{"model.heads", "model.width", "model.head_width"},
       [](const View& at) { return at.spec.model.head_width > 0 || at.spec.model.width % at.spec.model.heads == 0; },
       [](const View& at) { return cat("must divide model.width (", at.spec.model.width, ")"); }},
      {{"model.kv_heads", "model.heads"},
       [](const View& at) { return at.spec.model.heads % model::num_kv_heads(at.spec.model) == 0; },
       [](const View& at) { return cat("must divide model.heads (", at.spec.model.heads, ")"); }},
      {{"model.kv_heads", "model.family", "model.heads"},
       [](const View& at) {
         return model::family_of(at.spec.model).traits.key_heads == model::KeyHeads::Shared ||
                model::num_kv_heads(at.spec.model) == at.spec.model.heads;
       },
       [](const View& at) {
         return cat("must be 0 or model.heads when model.family is \"", at.spec.model.family, "\"");
       }},
      {{"mesh.ranks_per_node", "mesh.pipe", "mesh.data", "mesh.context", "mesh.expert", "mesh.tensor"},
       [](const View& at) {
         const int ranks = at.spec.mesh.ranks_per_node;
         return ranks == 0 || num_ranks(at.spec.mesh) % ranks == 0;
       },
       [](const View& at) { return cat("must be 0 or divide the number of ranks (", num_ranks(at.spec.mesh), ")"); }},
      {{"mesh.tensor", "model.heads"},
       [](const View& at) { return at.spec.model.heads % at.spec.mesh.tensor == 0; },
       [](const View& at) { return cat("must divide model.heads (", at.spec.model.heads, ")"); }},
      {{"mesh.tensor", "model.kv_heads", "model.heads"},
       [](const View& at) {
         return at.spec.model.heads % at.spec.mesh.tensor != 0 ||
                model::can_split_heads(at.spec.model, at.spec.mesh.tensor);
       },
       [](const View& at) {
         return cat("must divide model.kv_heads (", model::num_kv_heads(at.spec.model), ") or be a multiple of it");
       }},
      {{"mesh.tensor", "model.ffn", "model.width", "model.family"},
       [](const View& at) {
         const bool follows = at.spec.model.ffn == 0 && at.spec.model.heads % at.spec.mesh.tensor != 0;
         return follows || model::ffn_width(at.spec.model) % at.spec.mesh.tensor == 0;
       },
       [](const View& at) {
         return cat("must divide the ", counted(model::ffn_width(at.spec.model), "feature"),
                    " of the feed-forward branch");
       }},
      {{"mesh.sequence_parallel", "mesh.tensor"},
       [](const View& at) { return !at.spec.mesh.sequence_parallel || at.spec.mesh.tensor > 1; },
       [](const View&) {
         return std::string("must be false when mesh.tensor is 1: there are no ranks to split tokens over");
       }},
      {{"mesh.tensor", "mesh.sequence_parallel", "mesh.context", "model.context"},
       [](const View& at) {
         const auto& mesh = at.spec.mesh;
         return !mesh.sequence_parallel || at.spec.model.context / mesh.context % mesh.tensor == 0;
       },
       [](const View& at) {
         return cat("must divide the ", at.spec.model.context / at.spec.mesh.context,
                    " tokens of a sequence that a rank has, which sequence parallelism splits");
       }},
      {{"mesh.expert", "model.experts"},
       [](const View& at) {
         const int experts = at.spec.model.experts, ranks = at.spec.mesh.expert;
         return experts > 0 ? experts % ranks == 0 : ranks == 1;
       },
       [](const View& at) {
         const int experts = at.spec.model.experts;
         return experts > 0 ? cat("must divide model.experts (", experts, ")")
                            : std::string("must be 1 when model.experts is 0: there are no experts to share");
       }},
      {{"model.width", "model.heads", "model.family", "model.head_width"},
       [](const View& at) {
         return model::family_of(at.spec.model).traits.positions == model::PositionKind::Learned ||
                at.spec.model.head_width > 0 || at.spec.model.width % (2 * at.spec.model.heads) == 0;
       },
       [](const View& at) {
         return cat("must give each of model.heads (", at.spec.model.heads, ") an even number of features");
       }},
      too_many_ranks("mesh.data", Blame::Data),
      too_many_ranks("mesh.context", Blame::Context),
      too_many_ranks("mesh.tensor", Blame::Tensor),
      too_many_ranks("mesh.pipe", Blame::Pipe),
  };
}

std::vector<CrossRule> data_rules() {
  return {
      {{"data.paths"},
       [](const View& at) { return !at.spec.data.paths.empty(); },
       [](const View&) { return std::string("must name at least one file or folder"); }},
      {{"data.paths"},
       [](const View& at) {
         const auto& paths = at.spec.data.paths;
         return std::find(paths.begin(), paths.end(), "") == paths.end();
       },
       [](const View&) { return std::string("must not hold an empty path"); }},
      {{"data.include"},
       [](const View& at) {
         const auto& patterns = at.spec.data.include;
         return std::find(patterns.begin(), patterns.end(), "") == patterns.end();
       },
       [](const View&) { return std::string("must not hold an empty pattern"); }},
      {{"data.weights", "data.paths"},
       [](const View& at) {
         const auto& data = at.spec.data;
         return data.weights.empty() || data.weights.size() == data.paths.size();
       },
       [](const View& at) {
         return cat("must be empty or have one entry for each of data.paths (", at.spec.data.paths.size(), ")");
       }},
      {{"data.weights"},
       [](const View& at) {
         const auto& weights = at.spec.data.weights;
         return std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 1e-9 && w <= 1e9; });
       },
       [](const View&) { return std::string("must hold numbers from 1e-9 to 1e9"); }},
      {{"model.vocab", "data.tokenizer"},
       [](const View& at) {
         return at.spec.model.vocab == 0 || at.spec.model.vocab >= kByteTokens ||
                at.spec.data.tokenizer != kByteTokenizer;
       },
       [](const View& at) {
         return cat("must be 0 or at least ", kByteTokens, ", the tokens of data.tokenizer (\"", at.spec.data.tokenizer,
                    "\")");
       }},
      {{"data.validation_fraction", "train.eval_every"},
       [](const View& at) { return at.spec.data.validation_fraction > 0 || at.spec.train.eval_every == 0; },
       [](const View& at) {
         return cat("must be more than 0 when train.eval_every is set (", at.spec.train.eval_every, ")");
       }},
  };
}

std::vector<CrossRule> train_rules() {
  return {
      {{"mesh.batch_shares", "mesh.data"},
       [](const View& at) { return has_equal_shares(at.spec.mesh) || batch_shares(at.spec.mesh); },
       [](const View& at) {
         return cat("must be \"equal\" or have one whole number from 1 for each of mesh.data (", at.spec.mesh.data,
                    ")");
       }},
      {{"train.batch", "train.microbatch", "mesh.data", "mesh.expert", "mesh.batch_shares"},
       [](const View& at) { return at.spec.train.batch % batch_unit(at.spec) == 0; },
       [](const View& at) {
         const int64_t unit = batch_unit(at.spec), microbatch = at.spec.train.microbatch, ranks = at.spec.mesh.expert;
         return cat("must be divisible by train.microbatch x ",
                    batch_shares(at.spec.mesh) ? "the sum of mesh.batch_shares" : "mesh.data",
                    ranks > 1 ? " x mesh.expert (" : " (", microbatch, " x ", unit / microbatch / ranks,
                    ranks > 1 ? cat(" x ", ranks) : "", " = ", unit, ")");
       }},
      {{"mesh.data", "train.reduction"},
       [](const View& at) { return !reproducible(at.spec) || power_of_two(at.spec.mesh.data); },
       [](const View&) { return std::string("must be a power of two when train.reduction is \"reproducible\""); }},
      {{"train.tensor_parts", "mesh.tensor", "train.reduction"},
       [](const View& at) {
         const int ranks = at.spec.mesh.tensor, parts = at.spec.train.tensor_parts;
         return !reproducible(at.spec) || ranks == 1 || (parts % ranks == 0 && power_of_two(parts / ranks));
       },
       [](const View& at) {
         return cat("must be mesh.tensor (", at.spec.mesh.tensor,
                    ") times a power of two when train.reduction is \"reproducible\"");
       }},
      {{"train.batch", "train.microbatch", "mesh.data", "mesh.expert", "mesh.batch_shares", "train.reduction"},
       [](const View& at) {
         const int64_t unit = batch_unit(at.spec);
         return !reproducible(at.spec) || at.spec.train.batch % unit != 0 || power_of_two(at.spec.train.batch / unit);
       },
       [](const View& at) {
         return cat("must make a power of two of microbatches per rank when train.reduction is \"reproducible\", not ",
                    at.spec.train.batch / batch_unit(at.spec));
       }},
      {{"sync.replication", "train.device"},
       [](const View& at) {
         return at.spec.sync.replication != ReplicationKind::ParameterServer || at.spec.train.device == DeviceKind::Cpu;
       },
       [](const View&) { return std::string("needs train.device = \"cpu\": servers are on the host"); }},
      {{"train.device", "mesh.pipe", "mesh.data", "mesh.context", "mesh.tensor"},
       [](const View& at) { return at.spec.train.device != DeviceKind::Cuda || num_ranks(at.spec.mesh) == 1; },
       [](const View& at) {
         return cat("must be \"cpu\" when there are several ranks (", num_ranks(at.spec.mesh),
                    "): as threads they would wait for each other on a device, as processes they have none");
       }},
      {{"optimizer.warmup_steps", "optimizer.decay_steps", "optimizer.schedule", "train.steps"},
       [](const View& at) {
         const bool end_of_checkpoint = at.spec.optimizer.decay_steps == 0 && !at.spec.train.resume.empty();
         return !has_decay_end(at.spec.optimizer) || end_of_checkpoint ||
                at.spec.optimizer.warmup_steps <= decay_end(at.spec.optimizer, at.spec.train.steps);
       },
       [](const View& at) {
         const int own = at.spec.optimizer.decay_steps;
         return own > 0 ? cat("must be at most optimizer.decay_steps (", own, ")")
                        : cat("must be at most train.steps (", at.spec.train.steps, ")");
       }},
  };
}

}  // namespace

const std::vector<CrossRule>& cross_rules() {
  static const std::vector<CrossRule> kRules = [] {
    auto all = model_rules();
    for (auto& rule : mesh_rules()) all.push_back(std::move(rule));
    for (auto& rule : context_rules()) all.push_back(std::move(rule));
    for (auto& rule : partition_rules()) all.push_back(std::move(rule));
    for (auto& rule : schedule_rules()) all.push_back(std::move(rule));
    for (auto& rule : data_rules()) all.push_back(std::move(rule));
    for (auto& rule : objective_rules()) all.push_back(std::move(rule));
    for (auto& rule : sync_rules()) all.push_back(std::move(rule));
    for (auto& rule : memory_rules()) all.push_back(std::move(rule));
    for (auto& rule : train_rules()) all.push_back(std::move(rule));
    for (auto& rule : supervision_rules()) all.push_back(std::move(rule));
    for (auto& rule : placement_rules()) all.push_back(std::move(rule));
    for (auto& rule : checkpoint_rules()) all.push_back(std::move(rule));
    for (auto& rule : launch_rules()) all.push_back(std::move(rule));
    return all;
  }();
  return kRules;
}

}  // namespace braid::spec
