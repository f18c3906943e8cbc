// Click-through rates with a parameter server: who clicks is drawn from a known truth, so a model's area under the
// curve can be held against the best there is.
//
//   build/release/bin/example_click_through
//
// An impression has a value in each of several fields (page, advertisement, ...), and every value has a row in a table
// that two servers share. A step pulls the rows of its impressions and pushes gradients of these rows alone. Two
// models: logistic regression (a weight per row) and a factorisation machine, wide weights beside embeddings of four
// numbers (Rendle, "Factorization Machines", ICDM 2010), which is also what the truth is made by. Each is trained by
// four workers under three rules of consistency on the same samples. One of the four joins late, when the others have
// made some steps, and counts from the slowest worker's clock on.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <latch>
#include <numeric>
#include <thread>

#include "braid/base/seeds.h"
#include "braid/sync/server/local_servers.h"
#include "braid/sync/server/server_client.h"

namespace {

using braid::KeyedTensors;

constexpr int kFields = 6, kValues = 50, kRows = kFields * kValues, kEmbedding = 4;
constexpr int kWorkers = 4, kServers = 2, kBatch = 32, kStepsPerWorker = 600, kLateSteps = 50, kTestSamples = 20000;
constexpr double kRate = 0.2;

double normal(uint64_t key, uint64_t index) {
  const double u = braid::uniform(key, 2 * index), v = braid::uniform(key, 2 * index + 1);
  return std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * M_PI * v);
}

struct Impression {
  int64_t rows[kFields];
  float clicked;
};

// A row's part of the score: a weight, and an embedding whose products with the other rows' are added.
struct RowView {
  const float* at;
  int width;
  float weight() const { return at[0]; }
  float embedding(int k) const { return at[1 + k]; }
  int num_embedding() const { return width - 1; }
};

// bias + sum of weights + sum over pairs of rows of the products of their embeddings; `sum` becomes the embeddings'.
double score(double bias, const RowView (&rows)[kFields], double (&sum)[kEmbedding]) {
  double total = bias;
  std::fill_n(sum, kEmbedding, 0.0);
  for (const RowView& row : rows) {
    total += row.weight();
    for (int k = 0; k < row.num_embedding(); ++k) {
      sum[k] += row.embedding(k);
      total -= 0.5 * row.embedding(k) * row.embedding(k);
    }
  }
  for (const double s : sum) total += 0.5 * s * s;
  return total;
}

double click_rate(double score) { return 1 / (1 + std::exp(-score)); }

// The probability that two drawn impressions, one clicked and one not, are told apart.
double area_under_curve(std::vector<std::pair<double, float>> scored) {
  std::sort(scored.begin(), scored.end());
  double clicked = 0, ordered = 0, others = 0;
  for (const auto& [s, click] : scored) {
    if (click > 0) ordered += others;
    (click > 0 ? clicked : others) += 1;
  }
  return ordered / (clicked * others);
}

class Truth {
 public:
  Truth() : table_(static_cast<size_t>(kRows) * kWidth) {
    for (size_t i = 0; i < table_.size(); ++i) table_[i] = static_cast<float>(0.5 * normal(1, i));
  }

  // Impression number `index`: popular values come more often.
  Impression impression(uint64_t index) const {
    Impression one;
    for (int field = 0; field < kFields; ++field) {
      const double u = braid::uniform(2, index * kFields + static_cast<uint64_t>(field));
      one.rows[field] = field * kValues + static_cast<int64_t>(kValues * u * u);
    }
    one.clicked = braid::uniform(3, index) < click_rate(score_of(one)) ? 1 : 0;
    return one;
  }
  double score_of(const Impression& one) const {
    RowView rows[kFields];
    for (int f = 0; f < kFields; ++f) rows[f] = {table_.data() + one.rows[f] * kWidth, kWidth};
    double sum[kEmbedding];
    return score(-1, rows, sum);
  }

 private:
  static constexpr int kWidth = 1 + kEmbedding;
  std::vector<float> table_;
};

// One worker's view of a model: the bias, and the rows that a batch needs.
class Model {
 public:
  explicit Model(int width) : width_(width) {
    read_.dense = at::empty({1}, at::kFloat);
    read_.rows.resize(1);
    gradient_.dense = at::empty({1}, at::kFloat);
    gradient_.rows.resize(1);
  }

  // Reads the parameters of `batch`.
  void pull(braid::ServerClient& client, const std::vector<Impression>& batch) {
    rows_.clear();
    for (const Impression& one : batch) rows_.insert(rows_.end(), one.rows, one.rows + kFields);
    std::sort(rows_.begin(), rows_.end());
    rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
    at::Tensor index = at::empty({static_cast<int64_t>(rows_.size())}, at::kLong);
    std::copy(rows_.begin(), rows_.end(), index.mutable_data_ptr<int64_t>());
    read_.rows[0].index = index;
    client.pull(read_);
  }

  double score_of(const Impression& one, double (&sum)[kEmbedding]) const {
    RowView rows[kFields];
    for (int f = 0; f < kFields; ++f) rows[f] = {row(one.rows[f]), width_};
    return score(*read_.dense.const_data_ptr<float>(), rows, sum);
  }

  // Returns the gradient of the mean logistic loss of `batch`.
  const KeyedTensors& gradient(const std::vector<Impression>& batch) {
    at::Tensor& values = gradient_.rows[0].values;
    gradient_.rows[0].index = read_.rows[0].index;
    values = at::empty({static_cast<int64_t>(rows_.size()), width_}, at::kFloat);
    std::fill_n(values.mutable_data_ptr<float>(), values.numel(), 0.0f);
    double of_bias = 0;
    for (const Impression& one : batch) {
      double sum[kEmbedding];
      const double error = (click_rate(score_of(one, sum)) - one.clicked) / static_cast<double>(batch.size());
      of_bias += error;
      for (const int64_t r : one.rows) {
        float* g = values.mutable_data_ptr<float>() + place(r) * width_;
        g[0] += static_cast<float>(error);
        for (int k = 0; k + 1 < width_; ++k) g[1 + k] += static_cast<float>(error * (sum[k] - row(r)[1 + k]));
      }
    }
    *gradient_.dense.mutable_data_ptr<float>() = static_cast<float>(of_bias);
    return gradient_;
  }

 private:
  int64_t place(int64_t row) const { return std::lower_bound(rows_.begin(), rows_.end(), row) - rows_.begin(); }
  const float* row(int64_t r) const { return read_.rows[0].values.const_data_ptr<float>() + place(r) * width_; }

  const int width_;
  std::vector<int64_t> rows_;  // of the batch, ascending
  KeyedTensors read_, gradient_;
};

struct Outcome {
  double area = 0;
  braid::StalenessHistogram staleness;
  double waiting_seconds = 0;
  int64_t bytes = 0;  // sent and received by all workers
};

class Training {
 public:
  Training(const Truth& truth, int width, braid::ServerOptions server, braid::ClientOptions client)
      : truth_(truth), width_(width), client_(client) {
    server.num_workers = kWorkers;
    server.num_initial = kWorkers - 1;
    const braid::KeyShape shape{at::kFloat, 1, {{kRows, width}}};
    const braid::optim::ElementRule adagrad{.kind = braid::OptimizerKind::Adagrad};
    braid::LocalServers servers(shape, {.num_servers = kServers, .rule = adagrad, .server = server});
    std::vector<Outcome> outcomes(kWorkers);
    {
      std::vector<std::jthread> threads;
      for (int worker = 0; worker < kWorkers; ++worker) {
        threads.emplace_back([&, worker] { outcomes[static_cast<size_t>(worker)] = work(servers, worker); });
      }
    }
    for (const Outcome& one : outcomes) {
      outcome.area += one.area;
      outcome.staleness.add(one.staleness);
      outcome.waiting_seconds += one.waiting_seconds;
      outcome.bytes += one.bytes;
    }
  }

  Outcome outcome;

 private:
  Outcome work(braid::LocalServers& servers, int worker) {
    const bool late = worker == kWorkers - 1;
    if (late) begun_.wait();
    const auto channel = servers.worker_channel(worker);
    braid::ServerClient client(servers.shares(), servers.rule(), client_, *channel);
    if (worker == 0) client.store(initial(servers));
    if (!late) met_.arrive_and_wait();
    Model model(width_);
    std::vector<Impression> batch;
    for (auto step = static_cast<uint64_t>(client.clock()); step < kStepsPerWorker; ++step) {
      if (worker == 0 && step == kLateSteps) begun_.count_down();
      batch.clear();
      for (uint64_t i = 0; i < kBatch; ++i) {
        batch.push_back(truth_.impression((step * kWorkers + static_cast<uint64_t>(worker)) * kBatch + i));
      }
      model.pull(client, batch);
      client.push(model.gradient(batch), kRate);
    }
    Outcome outcome{.staleness = client.report().staleness, .waiting_seconds = client.report().waiting_seconds};
    outcome.bytes = client.report().bytes_sent + client.report().bytes_received;
    model.pull(client, {truth_.impression(0)});  // this worker's pushes are applied
    trained_.arrive_and_wait();
    if (worker == 0) outcome.area = test(model, client);
    client.leave();
    return outcome;
  }

  braid::sync::server::ShardState initial(const braid::LocalServers& servers) const {
    auto state = braid::sync::server::zero_state(servers.shares().whole, servers.rule());
    float* values = state.tables[0].values[0].mutable_data_ptr<float>();
    for (int64_t i = 0; i < int64_t{kRows} * width_; ++i) {
      values[i] = i % width_ == 0 ? 0 : static_cast<float>(0.1 * normal(4, static_cast<uint64_t>(i)));
    }
    return state;
  }

  double test(Model& model, braid::ServerClient& client) const {
    std::vector<Impression> batch;
    for (uint64_t i = 0; i < kTestSamples; ++i) batch.push_back(truth_.impression((uint64_t{1} << 40) + i));
    model.pull(client, batch);
    std::vector<std::pair<double, float>> scored;
    double sum[kEmbedding];
    for (const Impression& one : batch) scored.emplace_back(model.score_of(one, sum), one.clicked);
    return area_under_curve(std::move(scored));
  }

  const Truth& truth_;
  const int width_;
  const braid::ClientOptions client_;
  std::latch met_{kWorkers - 1}, begun_{1}, trained_{kWorkers};
};

double best_area(const Truth& truth) {
  std::vector<std::pair<double, float>> scored;
  for (uint64_t i = 0; i < kTestSamples; ++i) {
    const Impression one = truth.impression((uint64_t{1} << 40) + i);
    scored.emplace_back(truth.score_of(one), one.clicked);
  }
  return area_under_curve(std::move(scored));
}

}  // namespace

int main() try {
  using enum braid::Consistency;
  const Truth truth;
  const double best = best_area(truth);
  std::printf("at most %d samples, %d workers, %d servers; area under the curve of the truth: %.4f\n\n",
              kWorkers * kStepsPerWorker * kBatch, kWorkers, kServers, best);
  std::printf("model                  consistency   area    staleness mean, most   waiting, s   MB\n");
  bool good = true;
  for (const int width : {1, 1 + kEmbedding}) {
    for (const auto& [name, consistency, staleness] : {std::tuple("bsp", Bsp, 0), {"ssp 3", Ssp, 3}, {"asp", Asp, 0}}) {
      const Training run(truth, width, {.consistency = consistency, .staleness = staleness},
                         {.consistency = consistency, .staleness = staleness});
      const Outcome& o = run.outcome;
      std::printf("%-22s %-12s  %.4f  %8.2f %8ld          %6.2f   %6.1f\n",
                  width == 1 ? "logistic regression" : "factorisation machine", name, o.area, o.staleness.mean(),
                  static_cast<long>(o.staleness.most()), o.waiting_seconds, static_cast<double>(o.bytes) * 1e-6);
      good = good && o.area > (width == 1 ? 0.6 : best - 0.05) && o.area < (width == 1 ? best - 0.05 : best);
    }
  }
  return good ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
