#include "cairn/pipeline/train.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/cli/batch.h"
#include "cairn/cli/choice.h"
#include "cairn/cli/output.h"
#include "cairn/core/support/text.h"
#include "cairn/models/dataset.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"

namespace cairn::cli {
namespace {

/// Seconds that the search for a schedule may take if the user names no limit.
constexpr const char* kSearchLimit = "10s";

struct TrainArguments : ChoiceArguments {
  std::string data, report, checkpoint, schedule_of_rate = "constant";
  pipeline::TrainOptions train;
  models::UpdateOptions update;
  std::string of_optimizer;  ///< name of an optimizer's option that the user gave; empty: none

  /// Returns the source of the model, with an optimizer, because training needs one.
  pipeline::GraphSource source() const {
    pipeline::GraphSource source = graph.source();
    if (source.is_file()) {
      if (!of_optimizer.empty())
        throw core::InputError(
            fmt::format("{} is an option of models, but '{}' is a file, which says how weights are "
                        "updated; drop it",
                        of_optimizer, source.name));
      return source;
    }
    if (source.options.optimizer.empty()) source.options.optimizer = "adamw";
    source.options.update = update;
    source.options.update.rate = train.rate.base;
    return source;
  }

  pipeline::TrainOptions options() const {
    pipeline::TrainOptions options = train;
    options.seed = search.seed;
    options.streams = streams;
    options.checkpoint = checkpoint;
    options.stop = &catch_interrupt();
    if (schedule_of_rate == "cosine") options.rate.cosine = options.steps;
    return options;
  }
};

fit::Decision decide(const fit::Task& task, const core::Graph& given, const TrainArguments& arguments) {
  const core::Graph& graph = task.problem.graph;
  if (!arguments.schedule.empty()) return read_choice(task.problem, given, arguments).decision;
  if (!arguments.objective.given()) return fit::decide_on_baseline(graph, arguments.plan_options(graph));
  return search_choice(task, given, arguments, 0).decision;
}

/// Shows the progress of a training run on stderr: a line for each test and, on a terminal, a progress line that is
/// rewritten in place.
class Shown {
 public:
  explicit Shown(const Console& console) : tests_(!console.quiet && !console.json), line_(console) {}

  void operator()(const pipeline::TrainProgress& progress) {
    if (progress.test != nullptr) return show(*progress.test);
    constexpr double kEvery = 0.1;
    const double now = watch_.seconds();
    if (!line_.active() || (now - shown_at_ < kEvery && progress.step < progress.steps)) return;
    shown_at_ = now;
    const double left = progress.seconds_per_step * static_cast<double>(progress.steps - progress.step);
    line_.show(fmt::format("{}step {} of {}, loss {:.4f}, {:.0f} s left",
                           ProgressLine::bar(static_cast<double>(progress.step) / static_cast<double>(progress.steps)),
                           progress.step, progress.steps, progress.loss, left));
  }

 private:
  void show(const pipeline::TestResult& test) {
    if (!tests_) return;
    if (line_.active()) line_.show("");
    std::cerr << fmt::format("test after {} steps: {}\n", test.step, report::test_text(test));
  }

  bool tests_;  ///< whether to show the results of tests
  core::Stopwatch watch_{core::Limit{}};
  double shown_at_ = -1;
  ProgressLine line_;
};

/// Throws InputError unless `path` is suitable for a checkpoint, which is read and replaced: the path of a regular
/// file, or a path at which nothing exists.
void require_checkpoint(const std::string& path) {
  if (path == "-") throw core::InputError("--checkpoint needs the path of a file, because it is read and replaced");
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw core::InputError(fmt::format("--checkpoint '{}' is not a file; give the path of a file", path));
}

/// Returns a check that a number is above 0, or at least 0 if `or_zero` is set.
CLI::Validator above_zero(bool or_zero = false) {
  return CLI::Validator(
      [or_zero](const std::string& text) {
        double value = 0;
        const bool good =
            CLI::detail::lexical_cast(text, value) && std::isfinite(value) && (value > 0 || (or_zero && value == 0));
        return good ? std::string() : fmt::format("'{}' must be {}", text, or_zero ? "at least 0" : "above 0");
      },
      "", "");
}

int train(const TrainArguments& arguments) {
  if (arguments.data.empty()) throw core::InputError("train needs --data, as digits or shakespeare");
  if (arguments.train.resume && arguments.checkpoint.empty())
    throw core::InputError("--resume continues from a file; name it with --checkpoint");
  arguments.require_one_choice();
  if (!arguments.checkpoint.empty()) require_checkpoint(arguments.checkpoint);
  require_outputs({{"-o", arguments.output}, {"--report", arguments.report}, {"--checkpoint", arguments.checkpoint}},
                  {arguments.graph.input(), {"--schedule", arguments.schedule}, {"--start", arguments.start.path}});
  const models::Dataset data = models::load_dataset(arguments.data);
  const auto backend = pipeline::open_backend(arguments.backend.name());
  arguments.require_streams(*backend, arguments.train.poison);
  arguments.search.find();
  const pipeline::PreparedGraph graph = pipeline::prepare(*backend, arguments.source(), arguments.backend.given());
  const models::Batches fits(data, graph.prepared, 0);  // throws, before any search, if the data does not fit the model
  const fit::Task task =
      arguments.objective.task(graph.prepared, arguments.graph.name, arguments.alignment, arguments.search);
  pipeline::require_memory(*backend, graph.prepared, task.rounded);
  const fit::Decision decision = decide(task, graph.given, arguments);
  write_schedule(graph.given, arguments, decision.schedule, decision.solver,
                 decision.guarded ? std::nullopt : decision.plan);

  pipeline::TrainOptions options = arguments.options();
  const pipeline::TrainResult result = [&] {
    Shown shown(arguments.console);
    options.progress = std::ref(shown);
    return pipeline::train(*backend, graph, decision, data, options);
  }();
  const pipeline::TrainOutcome outcome{task.problem, *backend, graph.precision, decision, data, result};
  write_output(arguments.report, [&] { return report::train_page(outcome); });
  report::Json json = report::train_json(outcome);
  if (!arguments.console.json) arguments.console.print(json, report::train_table(outcome));
  if (result.interrupted)
    throw Failure(
        kInterrupted,
        fmt::format("interrupted after {} of {} steps{}", result.steps, options.steps,
                    arguments.checkpoint.empty() ? "; with --checkpoint, the next training can continue"
                                                 : "; continue with --resume --checkpoint " + arguments.checkpoint),
        std::move(json));
  if (!result.unwritten.empty()) throw Failure(kBadInput, result.unwritten, std::move(json));
  if (arguments.console.json) arguments.console.print(json, "");
  return kDone;
}

}  // namespace

Subcommand add_train(CLI::App& root) {
  CLI::App* app = root.add_subcommand("train", "train a model on a data set, under a memory budget");
  auto arguments = std::make_shared<TrainArguments>();
  arguments->console.add_to(*app);
  std::vector<std::string> names;
  for (const models::DatasetInfo& info : models::datasets())
    names.push_back(fmt::format("{}: {}", info.name, info.summary));
  app->add_option("--data", arguments->data, fmt::format("data set: {}", fmt::join(names, "; ")));
  app->add_option("--steps", arguments->train.steps, "training steps in all (default 500)")->check(at_least_one());
  app->add_option("--lr", arguments->train.rate.base, "learning rate (default 0.001)")->check(above_zero());
  const auto of_optimizer = [app, arguments](const std::string& option_names, double& value, const std::string& help) {
    CLI::Option* option = app->add_option(option_names, value, help);
    option->each([arguments, option](const std::string&) { arguments->of_optimizer = option->get_name(); });
    return option;
  };
  app->add_option("--lr-schedule", arguments->schedule_of_rate,
                  "constant (default), or cosine: falls to nearly 0 by the last step")
      ->check(CLI::IsMember({"constant", "cosine"}));
  app->add_option("--warmup", arguments->train.rate.warmup, "first steps, in which the learning rate rises to --lr")
      ->check(above_zero(true));
  of_optimizer("--momentum,--beta1", arguments->update.beta1, "momentum of sgd, or beta1 of adamw (default 0.9)")
      ->check(CLI::Range(0.0, 0.9999));
  of_optimizer("--beta2", arguments->update.beta2, "beta2 of adamw (default 0.999)")->check(CLI::Range(0.0, 0.999999));
  of_optimizer("--weight-decay", arguments->update.decay, "weight decay (default 0)")->check(above_zero(true));
  of_optimizer("--clip", arguments->update.clip, "largest norm of all gradients together (default: no limit)")
      ->check(above_zero());
  app->add_option(
         "--shift", arguments->train.shift,
         "pixels by which images are moved at random, so that there are more of them to learn from (default 1)")
      ->check(CLI::Range(0, 8));
  app->add_option("--test-every", arguments->train.test_every,
                  "steps between tests (default: only after the last step)")
      ->check(at_least_one());
  app->add_option("--checkpoint", arguments->checkpoint,
                  "file of tensors (safetensors) with all that is needed to continue; also written after Ctrl-C");
  app->add_option("--checkpoint-every", arguments->train.checkpoint_every, "steps between checkpoints (default 100)")
      ->check(at_least_one());
  app->add_flag("--resume", arguments->train.resume, "continue from the checkpoint, if the file exists");
  app->add_flag("--poison", arguments->train.poison,
                "fill every buffer with NaN after its last use, so that later reads show");
  arguments->objective.add_to(*app, "bytes of the arena; absent: the graph's own order is executed; 1.5GiB, 200MB");
  arguments->search.add_to(*app, kSearchLimit);
  arguments->start.add_to(*app);
  app->add_option("--schedule", arguments->schedule, "execute this schedule file instead of searching one");
  arguments->backend.add_to(*app);
  arguments->add_streams_to(*app);
  app->add_option("--report", arguments->report, "HTML page to write: the losses, memory over time, the plan");
  app->add_option("-o,--output", arguments->output, "schedule file to write");
  arguments->alignment.add_to(*app);
  arguments->graph.add_to(*app);
  app->footer(
      "Examples:\n"
      "  cairn train resnet18 --batch 64 --image 32 --classes 10 --data digits --budget 50% --steps 200\n"
      "  cairn train gpt2 --layers 2 --width 64 --heads 4 --seq 64 --vocab 62 --data shakespeare --budget 60%\n"
      "  cairn train resnet.json --data digits --checkpoint r.safetensors --resume");
  return {app, [arguments] { return train(with_batch(*arguments)); }};
}

}  // namespace cairn::cli
