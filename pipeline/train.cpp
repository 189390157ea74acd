#include "cairn/pipeline/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <type_traits>
#include <utility>
#include <variant>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/op_attrs.h"
#include "cairn/core/support/random.h"
#include "cairn/core/support/subgraph.h"
#include "cairn/pipeline/internal/backends.h"
#include "cairn/pipeline/internal/checkpoint.h"
#include "cairn/runtime/measure.h"
#include "cairn/runtime/support/residents.h"

namespace cairn::pipeline {
namespace {

using core::NodeId;
using core::OpKind;
using models::Batch;

/// Returns the node that computes the loss (models::loss_node()). Throws InputError if there is none.
NodeId loss_node(const core::Graph& graph) {
  if (const std::optional<NodeId> node = models::loss_node(graph)) return *node;
  throw core::InputError(fmt::format("'{}' keeps no loss of predictions, so it cannot be trained", graph.name()));
}

float loss_of(runtime::Executor& executor, const std::string& node) {
  std::vector<float> loss(1);
  executor.get_output(node, loss);
  return loss.front();
}

runtime::TensorView view_of(const models::InputValues& input) {
  return std::visit([](const auto& values) { return runtime::TensorView(values); }, input.values);
}

/// Returns the nodes that a node depends on, and the node itself.
std::vector<NodeId> ancestors(const core::Graph& graph, NodeId last) {
  std::vector<bool> seen(static_cast<std::size_t>(graph.node_count()));
  std::vector<NodeId> found{last};
  seen[static_cast<std::size_t>(last)] = true;
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const NodeId u : graph.predecessors(found[i])) {
      if (!seen[static_cast<std::size_t>(u)]) found.push_back(u);
      seen[static_cast<std::size_t>(u)] = true;
    }
  }
  return found;
}

/// Returns the graph for tests: the part of a training graph that computes the loss. In the returned graph, the
/// predictions are kept, and dropouts drop nothing. Throws InputError if this part updates weights.
core::Graph graph_of_tests(const core::Graph& graph) {
  const core::Graph forward = core::induced_subgraph(graph, ancestors(graph, loss_node(graph)), {graph.name()}).graph;
  if (runtime::updates_weights(forward))
    throw core::InputError(fmt::format("'{}' updates weights before its loss, so it cannot be tested", graph.name()));
  core::GraphBuilder builder(forward);
  for (NodeId v = 0; v < builder.node_count(); ++v) {
    core::Node& node = builder.node(v);
    if (node.op && node.op->kind == OpKind::dropout) node.op->attrs.p = 0;
  }
  const core::Operand predictions = forward.op(loss_node(forward))->args[0];
  core::Node& node = builder.node(predictions.index);
  (node.outputs.empty() ? node.keep : node.outputs[static_cast<std::size_t>(predictions.output)].keep) = true;
  return builder.build();
}

/// Evaluates the test part of a data set with the current weights of a training run.
class Tester {
 public:
  /// The tests run in `arena` if it is large enough, and otherwise in an arena of their own.
  Tester(Backend& backend, const PreparedGraph& graph, const models::Dataset& data, const models::Batches& batches,
         const runtime::ArenaView& arena)
      : data_(data),
        batches_(batches),
        graph_(backend.prepare(graph_of_tests(graph.prepared), graph.precision)),
        decision_(fit::decide_on_baseline(graph_, {.alignment = 256, .limit = {.work = 0}})),
        request_{.graph = graph_,
                 .schedule = decision_.schedule,
                 .plan = decision_.executed_plan(),
                 .precision = graph.precision,
                 .arena = arena.bytes >= decision_.executed_plan().bytes ? arena : runtime::ArenaView()},
        executor_(backend.load(request_)) {
    const NodeId loss = loss_node(graph_);
    loss_ = graph_.name(loss);
    const core::Operand& predictions = graph_.op(loss)->args[0];
    predictions_ = graph_.name(predictions.index);
    output_ = predictions.output;
    elements_ = core::element_count(core::output_shape(*graph_.op(predictions.index), predictions.output));
    if (data.kind == models::Dataset::Kind::images && elements_ % batches.batch_size() != 0)
      throw core::InputError(fmt::format("'{}' has {} predictions for a batch of {} images", graph_.name(), elements_,
                                         batches.batch_size()));
  }

  TestResult test(std::int64_t step, runtime::Executor& trained) {
    copy_weights(trained);
    TestResult result{step, 0, {}};
    std::int64_t right = 0, examples = 0;
    for (std::int64_t i = 0; i < batches_.test_batches(); ++i) {
      const Batch batch = batches_.test(i);
      for (const models::InputValues& input : batch.inputs) executor_->set(input.name, view_of(input));
      executor_->run();
      result.loss += static_cast<double>(loss_of(*executor_, loss_)) * static_cast<double>(batch.examples);
      if (data_.kind == models::Dataset::Kind::images) right += count_right(batches_.test_labels(i));
      examples += batch.examples;
    }
    result.loss /= static_cast<double>(examples);
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
    std::vector<float> predictions(static_cast<std::size_t>(elements_));
    executor_->get_output(predictions_, predictions, output_);
    const std::int64_t classes = elements_ / batches_.batch_size();
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
  std::string loss_, predictions_;  ///< names of the nodes that compute the loss and the predictions
  std::int32_t output_ = 0;         ///< index of the predictions among the outputs of their node
  std::int64_t elements_ = 0;       ///< number of the predictions for a batch
};

/// Returns a hash of all ops of the graph, without their costs and scratch.
std::string hash_of_ops(const core::Graph& graph) {
  std::uint64_t hash = 0;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = core::Random(hash ^ static_cast<std::uint64_t>(c)).next();
  };
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    const core::Op* op = graph.op(v);
    if (op == nullptr) continue;
    add(runtime::op_signature(graph, v));
    add(std::to_string(op->writes));
    for (const core::Operand& arg : op->args)
      add(fmt::format("{}.{}.{}", static_cast<int>(arg.kind), arg.index, arg.output));
    core::for_each_attr(op->attrs, [&](const char*, const auto& value) {
      if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(value)>, std::vector<std::int64_t>>)
        add(fmt::format("{} ", value));  // attributes that are lists are in op_signature()
    });
  }
  return fmt::format("{:016x}", hash);
}

/// Returns the settings that determine the course of a training run (see TrainSettings).
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
                         {"learning rate falls until step", std::to_string(options.rate.cosine)},
                         {kOpsSetting, hash_of_ops(graph)}};
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

/// Finds the resident tensors from which all updates of a graph read the learning rate and the number of the training
/// step.
struct UpdateInputs {
  std::string rate, step;  ///< names of the two tensors; empty if no update reads such a tensor

  explicit UpdateInputs(const core::Graph& graph) {
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      const core::Op* op = graph.op(v);
      if (op == nullptr || !core::is_update(op->kind)) continue;
      const bool adamw = op->kind == OpKind::adamw;
      take(graph, v, op->args[adamw ? 4 : 3], rate, "learning rate");
      if (adamw) take(graph, v, op->args[5], step, "number of the step");
    }
  }

 private:
  static void take(const core::Graph& graph, NodeId v, const core::Operand& arg, std::string& name, const char* what) {
    if (arg.kind != core::Operand::Kind::resident)
      throw core::InputError(
          fmt::format("node '{}' reads the {} from another node, so it cannot be set; let it read a "
                      "resident tensor",
                      graph.name(v), what));
    const std::string& read = graph.residents()[static_cast<std::size_t>(arg.index)].name;
    if (name.empty()) name = read;
    if (name != read)
      throw core::InputError(
          fmt::format("updates read the {} from '{}' and from '{}'; let all read the same tensor", what, name, read));
  }
};

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
        inputs_(graph.prepared),
        executor_(backend.load({.graph = graph.prepared,
                                .schedule = decision.schedule,
                                .plan = decision.executed_plan(),
                                .precision = graph.precision,
                                .seed = options.seed,
                                .poison = options.poison,
                                .streams = options.streams})),
        tester_(backend_, graph_, data_, batches_, executor_->arena()) {
    if (!options.checkpoint.empty())  // throws now, not after hours, if the file cannot be written
      core::FileWriter(options.checkpoint, core::FileWriter::FixedPart{});
    if (!options.checkpoint.empty() && std::filesystem::exists(options.checkpoint)) {
      if (!options.resume)
        throw core::InputError(fmt::format("{}: there is a checkpoint; continue it, or remove the file to begin again",
                                           options.checkpoint));
      state_ = read_checkpoint(options.checkpoint, settings_, *executor_);
    }
    if (state_.step > options.steps)
      throw core::InputError(fmt::format("{}: the checkpoint has done {} steps already; ask for as many or more",
                                         options.checkpoint, state_.step));
    result_.first_step = state_.step;
    result_.planned_bytes = decision.executed_plan().bytes;
    if (options.streams > 1) result_.overlap = runtime::overlap(executor_->program(), options.streams);
  }

  TrainResult train() {
    if (state_.step < options_.steps) stage(state_.step);
    while (state_.step < options_.steps && !is_raised(options_.stop)) {
      step();
      const bool last = state_.step == options_.steps;
      if (last || due(options_.test_every)) test();
      if (!last && due(options_.checkpoint_every)) write();
    }
    result_.interrupted = state_.step < options_.steps;
    if (state_.step > result_.first_step) write();
    result_.steps = state_.step;
    result_.losses = std::move(state_.losses);
    result_.tests = std::move(state_.tests);
    if (!tested_ && state_.step > result_.first_step) measure_peak();
    result_.digest = digest_of_weights(*executor_);
    return std::move(result_);
  }

 private:
  bool due(std::int64_t every) const { return every > 0 && state_.step % every == 0; }

  /// Hands the inputs of a training step to the executor.
  void stage(std::int64_t step) {
    for (const models::InputValues& input : batches_.training(step).inputs)
      executor_->stage(input.name, view_of(input));
    const auto stage_number = [&](const std::string& name, double value) {
      if (!name.empty()) executor_->stage(name, std::vector<float>{static_cast<float>(value)});
    };
    stage_number(inputs_.rate, options_.rate.at(step));
    stage_number(inputs_.step, static_cast<double>(step + 1));
    // The seed must not be 0, because 0 means that only the seeds in the graph determine what dropouts drop.
    executor_->set_dropout_seed(1 + options_.seed * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(step));
  }

  void step() {
    const core::Stopwatch watch(core::Limit{});
    executor_->enqueue();
    // The inputs of the next training step are copied to the GPU while this step runs. This is safe even if tests run
    // after this step, because tests use an executor of their own.
    if (state_.step + 1 < options_.steps) stage(state_.step + 1);
    executor_->wait();
    const float loss = loss_of(*executor_, loss_);
    result_.seconds += watch.seconds();
    ++state_.step;
    require_finite("training", static_cast<double>(loss));
    state_.losses.push_back(loss);
    report(nullptr);
  }

  /// Tests the current weights. If the test fails, first writes a checkpoint, so that the training steps so far are not
  /// lost.
  void test() {
    if (!tested_) measure_peak();
    tested_ = true;
    try {
      const TestResult result = tester_.test(state_.step, *executor_);
      require_finite("test after", result.loss);
      state_.tests.push_back(result);
    } catch (...) {
      write();
      throw;
    }
    report(&state_.tests.back());
  }

  void require_finite(const char* when, double loss) const {
    if (std::isfinite(loss)) return;
    throw core::InputError(
        fmt::format("the loss of the {} step {} is {}; lower the learning rate ({}) or clip gradients", when,
                    state_.step, std::isnan(loss) ? "NaN" : "infinite", options_.rate.base));
  }

  /// Stores the measured peak. Must be called before the first test, because tests use the same arena.
  void measure_peak() { result_.measured_peak_bytes = executor_->measured_peak_bytes(); }

  /// Writes a checkpoint. If it cannot be written, training continues, and TrainResult::unwritten says why it could not
  /// be written.
  void write() {
    if (options_.checkpoint.empty()) return;
    try {
      write_checkpoint(options_.checkpoint, state_, settings_, *executor_);
      result_.unwritten.clear();
    } catch (const core::InputError& error) {
      result_.unwritten = error.what();
    }
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
  UpdateInputs inputs_;
  std::unique_ptr<runtime::Executor> executor_;
  Tester tester_;
  bool tested_ = false;
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
