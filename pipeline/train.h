#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/models/batches.h"
#include "cairn/models/dataset.h"
#include "cairn/pipeline/backend.h"
#include "cairn/solvers/fit/decision.h"
#include "cairn/solvers/fit/problem.h"

/// Trains a model: executes the schedule of its training step once per batch of a data set. The graph must update its
/// weights itself (models::BuildOptions::optimizer).
namespace cairn::pipeline {

/// The learning rate of every training step.
struct LearningRate {
  double base = 1e-3;
  std::int64_t warmup = 0;  ///< during this many first steps, the rate rises linearly to `base`
  /// If above 0, the rate falls along half a cosine wave after the warm-up, from `base` to 0 at this step. If 0, the
  /// rate stays at `base` after the warm-up.
  std::int64_t cosine = 0;

  /// Returns the rate of step `step`, counted from 0.
  double at(std::int64_t step) const;
};

/// The result of a test: the test part of a data set is evaluated with the weights after some training step. In a test,
/// dropouts drop nothing, and batch norms use the statistics of the test batch.
struct TestResult {
  std::int64_t step = 0;  ///< number of training steps before the test
  /// Mean over the batches, weighted by their numbers of different examples. The last batch is filled up with its own
  /// examples, in turn, so that some of them count once more than others.
  double loss = 0;
  std::optional<double> accuracy;  ///< share of the examples with the right label; none for a text
};

struct TrainProgress {
  std::int64_t step = 0, steps = 0;  ///< steps done, and all steps
  double loss = 0;                   ///< loss of the last step
  double seconds_per_step = 0;       ///< mean over the steps since this call of train() began
  const TestResult* test = nullptr;  ///< a result that has just been computed; else nullptr
};

struct TrainOptions {
  std::int64_t steps = 500;
  std::uint64_t seed = 0;  ///< determines the initial weights, the order of the data, and what dropouts drop
  LearningRate rate = {};
  std::int64_t shift = 1;       ///< largest number of pixels by which images are moved at random (models::Batches)
  std::int64_t test_every = 0;  ///< number of steps between tests; 0: a test only after the last step
  /// Path of the checkpoint, a file from which training can be continued; empty: none is written. If `resume` is false,
  /// the file must not exist.
  std::string checkpoint;
  std::int64_t checkpoint_every = 100;      ///< number of steps between checkpoints; the last is at the end
  bool resume = false;                      ///< whether to continue from the checkpoint, if the file exists
  int streams = 1;                          ///< number of streams on which a training step runs
  bool poison = false;                      ///< whether to fill a buffer with NaN when its lifetime ends
  const std::atomic<bool>* stop = nullptr;  ///< ends the training after the current step; a checkpoint is then written
  std::function<void(const TrainProgress&)> progress = {};  ///< called after every step and every test; may be empty
};

struct TrainResult {
  std::int64_t first_step = 0;  ///< number of steps done by the checkpoint that was read; else 0
  std::int64_t steps = 0;       ///< number of all steps done, those before the checkpoint included
  std::vector<float> losses;    ///< loss of every step, those before the checkpoint included
  std::vector<TestResult> tests;
  double seconds = 0;              ///< time of the steps from first_step on, without tests and checkpoints
  std::int64_t planned_bytes = 0;  ///< size of the arena in the plan
  /// Bytes of the arena up to the highest written byte; none if no step was left to do.
  std::optional<std::int64_t> measured_peak_bytes;
  std::optional<runtime::Overlap> overlap;  ///< set if steps run on several streams
  bool interrupted = false;
  std::string unwritten;  ///< why the last checkpoint could not be written; empty if it was written
  /// Hash in 16 hex digits of the bytes of all weights and of the optimizer's state.
  std::string digest;
};

/// Everything that a report about a training run shows.
struct TrainOutcome {
  const fit::Problem& problem;  ///< problem of the executed graph
  const Backend& backend;
  core::Precision precision;
  const fit::Decision& decision;
  const models::Dataset& data;
  const TrainResult& result;
};

/// Returns whether the graph updates weights, so that it can be trained.
bool is_trainable(const core::Graph& graph);

/// Trains a model. `decision` must have been made for graph.prepared. With the same seed, data and backend, losses and
/// weights have the same bits for every decision, even if training was interrupted and continued. Throws InputError if
/// the graph updates no weights, if the data does not fit the graph, or if the checkpoint is damaged or belongs to
/// another training run. Throws InputError with the number of the step if a loss is not finite. Also throws the
/// exceptions of Backend::load() and Executor::run().
TrainResult train(Backend& backend, const PreparedGraph& graph, const fit::Decision& decision,
                  const models::Dataset& data, const TrainOptions& options = {});

}  // namespace cairn::pipeline
