#include "cairn/pipeline/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <utility>
#include <variant>

#include "cairn/core/error.h"
#include "cairn/core/limit.h"
#include "cairn/pipeline/internal/backends.h"
#include "cairn/pipeline/internal/checkpoint.h"
#include "cairn/runtime/support/residents.h"

namespace cairn::pipeline {
namespace {

using core::NodeId;
using core::OpKind;
using models::Batch;

/// Returns the node of the loss, which is kept.
NodeId loss_node(const core::Graph& graph) {
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    const core::Op* op = graph.op(v);
    if (op != nullptr && graph.keep(v) && (op->kind == OpKind::cross_entropy || op->kind == OpKind::mse)) return v;
  }
  throw core::InputError(fmt::format("'{}' keeps no loss, so it cannot be trained", graph.name()));
}

float loss_of(runtime::Executor& executor, const std::string& node) {
  std::vector<float> loss(1);
  executor.get_output(node, loss);
  return loss.front();
}

runtime::TensorView view_of(const models::InputValues& input) {
  return std::visit([](const auto& values) { return runtime::TensorView(values); }, input.values);
}

/// Returns the forward pass of a training graph for tests: it keeps its predictions, and dropouts drop nothing.
core::Graph graph_of_tests(const core::Graph& graph) {
  core::GraphBuilder builder(core::forward_part(graph));
  for (NodeId v = 0; v < builder.node_count(); ++v) {
    if (builder.node(v).op && builder.node(v).op->kind == OpKind::dropout) builder.node(v).op->attrs.p = 0;
  }
  const NodeId loss = loss_node(core::forward_part(graph));
  builder.node(builder.node(loss).op->args[0].index).keep = true;
  return builder.build();
}

/// Evaluates the test part of a data set with the weights of a training.
class Tester {
 public:
  /// The tests use `arena` if it is large enough.
  Tester(Backend& backend, const PreparedGraph& graph, const models::Dataset& data, const models::Batches& batches,
         const runtime::ArenaView& arena)
      : data_(data),
        batches_(batches),
        graph_(backend.prepare(graph_of_tests(graph.prepared), graph.precision)),
        decision_(fit::decide_on_baseline(graph_, {.alignment = 256, .limit = {.work = 0}})),
        request_{.graph = graph_,
                 .schedule = decision_.schedule,
                 .plan = decision_.plan,
                 .precision = graph.precision,
                 .arena = arena.bytes >= decision_.plan.bytes ? arena : runtime::ArenaView()},
        executor_(backend.load(request_)) {
    const NodeId loss = loss_node(graph_);
    loss_ = graph_.name(loss);
    const core::Operand& predictions = graph_.op(loss)->args[0];
    predictions_ = graph_.name(predictions.index);
    shape_ = graph_.op(predictions.index)->shape;
  }

  TestResult test(std::int64_t step, runtime::Executor& trained) {
    copy_weights(trained);
    TestResult result{step, 0, {}};
    std::int64_t right = 0, examples = 0;
    for (std::int64_t i = 0; i < batches_.test_batches(); ++i) {
      const Batch batch = batches_.test(i);
      for (const models::InputValues& input : batch.inputs) executor_->set(input.name, view_of(input));
      executor_->run();
      result.loss += static_cast<double>(loss_of(*executor_, loss_)) / static_cast<double>(batches_.test_batches());
      if (data_.kind == models::Dataset::Kind::images) right += count_right(batches_.test_labels(i));
      examples += batch.examples;
    }
    if (data_.kind == models::Dataset::Kind::images)
      result.accuracy = static_cast<double>(right) / static_cast<double>(examples);
    return result;
  }

 private:
  void copy_weights(runtime::Executor& trained) {
    std::vector<float> values;
    for (const core::Resident& resident : graph_.residents()) {
      if (resident.role != core::Resident::Role::weight) continue;
      values.resize(static_cast<std::size_t>(core::element_count(resident.shape)));
      trained.get(resident.name, values);
      executor_->set(resident.name, values);
    }
  }

  std::int64_t count_right(const std::vector<std::int32_t>& labels) {
    std::vector<float> predictions(static_cast<std::size_t>(core::element_count(shape_)));
    executor_->get_output(predictions_, predictions);
    const std::int64_t classes = shape_.back();
    std::int64_t right = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto row = predictions.begin() + static_cast<std::int64_t>(i) * classes;
      right += std::max_element(row, row + classes) - row == labels[i] ? 1 : 0;
    }
    return right;
  }

  const models::Dataset& data_;
  const models::Batches& batches_;
  core::Graph graph_;
  fit::Decision decision_;
  ExecuteRequest request_;
  std::unique_ptr<runtime::Executor> executor_;
  std::string loss_, predictions_;  ///< names of nodes
  core::Shape shape_;               ///< of the predictions
};

/// Returns what determines the course of a training, other than the values of the seed's tensors.
TrainSettings settings_of(const core::Graph& graph, const models::Dataset& data, const models::Batches& batches,
                          const TrainOptions& options, core::Precision precision) {
  TrainSettings settings{{"model", graph.name()},
                         {"data", std::string(data.name)},
                         {"batch", std::to_string(batches.batch_size())},
                         {"seed", std::to_string(options.seed)},
                         {"shift", std::to_string(options.shift)},
                         {"precision", std::string(core::to_string(precision))},
                         {"learning rate", fmt::format("{}", options.rate.base)},
                         {"warm-up", std::to_string(options.rate.warmup)},
                         {"cosine", std::to_string(options.rate.cosine)}};
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    const core::Op* op = graph.op(v);
    if (op == nullptr || !core::is_update(op->kind)) continue;
    const core::OpAttrs& a = op->attrs;
    const bool clips = op->args.back().kind == core::Operand::Kind::node;
    settings["optimizer"] = fmt::format("{} (beta1 {}, beta2 {}, eps {}, decay {}, clip {})", core::to_string(op->kind),
                                        a.beta1, a.beta2, a.eps, a.decay, clips ? a.limit : 0);
    break;
  }
  return settings;
}

class Training {
 public:
  Training(Backend& backend, const PreparedGraph& graph, const fit::Decision& decision, const models::Dataset& data,
           const TrainOptions& options)
      : backend_(backend),
        graph_(graph),
        data_(data),
        options_(options),
        batches_(data, graph.prepared, options.seed, options.shift),
        settings_(settings_of(graph.prepared, data, batches_, options, graph.precision)),
        loss_(graph.prepared.name(loss_node(graph.prepared))),
        executor_(backend.load({.graph = graph.prepared,
                                .schedule = decision.schedule,
                                .plan = decision.plan,
                                .precision = graph.precision,
                                .seed = options.seed,
                                .poison = options.poison})) {
    if (options.resume && !options.checkpoint.empty() && std::filesystem::exists(options.checkpoint))
      state_ = read_checkpoint(options.checkpoint, settings_, *executor_);
    if (state_.step > options.steps)
      throw core::InputError(fmt::format("{}: the checkpoint has done {} steps already; ask for as many or more",
                                         options.checkpoint, state_.step));
    result_.first_step = state_.step;
    result_.planned_bytes = decision.plan.bytes;
  }

  TrainResult train() {
    if (state_.step < options_.steps) stage(state_.step);
    while (state_.step < options_.steps && !is_raised(options_.stop)) {
      step();
      const bool last = state_.step == options_.steps;
      if (last || due(options_.test_every)) test();
      if (last || due(options_.checkpoint_every)) write();
    }
    result_.interrupted = state_.step < options_.steps;
    if (result_.interrupted) write();
    result_.steps = state_.step;
    result_.losses = std::move(state_.losses);
    result_.tests = std::move(state_.tests);
    if (!tester_) measure_peak();
    result_.digest = digest_of_weights(*executor_);
    return std::move(result_);
  }

 private:
  bool due(std::int64_t every) const { return every > 0 && state_.step % every == 0; }

  /// Hands the inputs of a step to the executor.
  void stage(std::int64_t step) {
    for (const models::InputValues& input : batches_.training(step).inputs)
      executor_->stage(input.name, view_of(input));
    const auto stage_number = [&](const char* name, double value) {
      const std::vector<float> number{static_cast<float>(value)};
      if (has(name)) executor_->stage(name, number);
    };
    stage_number("learning_rate", options_.rate.at(step));
    stage_number("step", static_cast<double>(step + 1));
    // Seed 0 would mean that the graph's own seeds alone decide.
    executor_->set_dropout_seed(1 + options_.seed * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(step));
  }

  bool has(const char* name) const {
    return std::ranges::find(graph_.prepared.residents(), name, &core::Resident::name) !=
           graph_.prepared.residents().end();
  }

  void step() {
    const core::Stopwatch watch(core::Limit{});
    executor_->enqueue();
    // The inputs of the next step go to a GPU while this step runs. A step with tests behind it is no exception,
    // because they run on an executor of their own.
    if (state_.step + 1 < options_.steps) stage(state_.step + 1);
    executor_->wait();
    const float loss = loss_of(*executor_, loss_);
    result_.seconds += watch.seconds();
    if (!std::isfinite(loss))
      throw core::InputError(fmt::format("the loss of step {} is {}; lower the learning rate ({}) or clip gradients",
                                         state_.step + 1, loss, options_.rate.base));
    state_.losses.push_back(loss);
    ++state_.step;
    report(nullptr);
  }

  void test() {
    if (!tester_) {
      measure_peak();
      tester_.emplace(backend_, graph_, data_, batches_, executor_->arena());
    }
    state_.tests.push_back(tester_->test(state_.step, *executor_));
    report(&state_.tests.back());
  }

  /// Must be called before tests, which use the same arena.
  void measure_peak() { result_.measured_peak_bytes = executor_->measured_peak_bytes(); }

  void write() {
    if (!options_.checkpoint.empty()) write_checkpoint(options_.checkpoint, state_, settings_, *executor_);
  }

  void report(const TestResult* test) const {
    if (!options_.progress) return;
    const std::int64_t done = state_.step - result_.first_step;
    options_.progress({state_.step, options_.steps, static_cast<double>(state_.losses.back()),
                       result_.seconds / static_cast<double>(done), test});
  }

  Backend& backend_;
  const PreparedGraph& graph_;
  const models::Dataset& data_;
  const TrainOptions& options_;
  models::Batches batches_;
  TrainSettings settings_;
  std::string loss_;  ///< name of the loss's node
  std::unique_ptr<runtime::Executor> executor_;
  std::optional<Tester> tester_;
  TrainState state_;
  TrainResult result_;
};

}  // namespace

double LearningRate::at(std::int64_t step) const {
  if (step < warmup) return base * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (cosine <= warmup) return base;
  const double share = static_cast<double>(std::min(step, cosine) - warmup) / static_cast<double>(cosine - warmup);
  return base * 0.5 * (1 + std::cos(std::numbers::pi * share));
}

bool is_trainable(const core::Graph& graph) { return runtime::updates_weights(graph); }

TrainResult train(Backend& backend, const PreparedGraph& graph, const fit::Decision& decision,
                  const models::Dataset& data, const TrainOptions& options) {
  if (!is_trainable(graph.prepared))
    throw core::InputError(fmt::format("'{}' does not update its weights; build it with an optimizer, sgd or adamw",
                                       graph.prepared.name()));
  return Training(backend, graph, decision, data, options).train();
}

}  // namespace cairn::pipeline
