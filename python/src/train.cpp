#include "cairn/pipeline/train.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/precision.h"
#include "cairn/models/batches.h"
#include "cairn/models/dataset.h"
#include "cairn/python/src/bindings.h"
#include "cairn/python/src/call.h"
#include "cairn/python/src/choice.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"

namespace cairn::python {
namespace {

/// The Python class TrainResult: the result of a training.
struct Trained {
  std::shared_ptr<pipeline::Backend> backend;
  fit::Task task;
  core::Precision precision;
  fit::Decision decision;
  std::shared_ptr<models::Dataset> data;
  pipeline::TrainResult result;

  pipeline::TrainOutcome outcome() const { return {task.problem, *backend, precision, decision, *data, result}; }
};

/// Returns the learning rate with which the graph was built, or the default if it has none.
double rate_of(const core::Graph& graph) {
  for (const core::Resident& resident : graph.residents()) {
    if (resident.name == "learning_rate" && resident.init == core::Resident::Init::constant) return resident.scale;
  }
  return pipeline::LearningRate().base;
}

Trained train(const core::Graph& given, const std::string& data_name, const pipeline::Request& request,
              const SearchArguments& search, nb::handle schedule, const std::string& backend_name,
              const std::optional<std::string>& precision, std::optional<double> rate, pipeline::TrainOptions options,
              nb::object progress) {
  const auto data = std::make_shared<models::Dataset>(models::load_dataset(data_name));
  std::shared_ptr<pipeline::Backend> backend = pipeline::open_backend(backend_name);
  backend->require_streams(options.streams, request.overlap_steps, options.poison);
  std::optional<core::Precision> stored;
  if (precision) stored = core::precision_from_string(*precision);
  const pipeline::PreparedGraph graph = pipeline::prepare(*backend, given, stored);
  // throws before a search begins if the data set does not fit the graph
  const models::Batches fits(*data, graph.prepared, 0);
  Call searching;
  Choice choice = choose(*backend, graph.prepared, request, search, schedule, 0, searching);

  Call call(std::move(progress));
  options.seed = search.seed;
  options.rate.base = rate.value_or(rate_of(given));
  options.stop = call.stop();
  if (call.tells())
    options.progress = [&](const pipeline::TrainProgress& now) { call.tell(now.step, now.steps, now.loss); };
  Trained trained{std::move(backend), std::move(choice.task), graph.precision, std::move(choice.decision), data, {}};
  call.run([&] { trained.result = pipeline::train(*trained.backend, graph, trained.decision, *data, options); });
  call.raise_pending();
  if (call.interrupted())
    raise_interrupted(
        fmt::format("interrupted after {} of {} steps; the result is in .best", trained.result.steps, options.steps),
        nb::cast(std::move(trained)));
  return trained;
}

void bind_options(nb::module_& module) {
  nb::class_<pipeline::TrainOptions>(module, "TrainOptions")
      .def(
          "__init__",
          [](pipeline::TrainOptions* self, std::int64_t steps, std::int64_t warmup, bool cosine, std::int64_t shift,
             std::int64_t test_every, std::string checkpoint, std::int64_t checkpoint_every, bool resume, int streams,
             bool poison) {
            new (self) pipeline::TrainOptions{
                .steps = steps,
                .rate = {.warmup = warmup, .cosine = cosine ? steps : 0},
                .shift = shift,
                .test_every = test_every,
                .checkpoint = std::move(checkpoint),
                .checkpoint_every = checkpoint_every,
                .resume = resume,
                .streams = streams,
                .poison = poison,
            };
          },
          "steps"_a, "warmup"_a, "cosine"_a, "shift"_a, "test_every"_a, "checkpoint"_a, "checkpoint_every"_a,
          "resume"_a, "streams"_a, "poison"_a);
}

void bind_train_result(nb::module_& module) {
  using Test = pipeline::TestResult;
  nb::class_<Test>(module, "TestResult", "The result of evaluating the test part of a data set.")
      .def_ro("step", &Test::step, "Number of training steps before the test.")
      .def_ro("loss", &Test::loss)
      .def_ro("accuracy", &Test::accuracy, "Share of the examples with the right label; None for a text.")
      .def("__repr__", [](const Test& test) {
        return fmt::format("<cairn.TestResult after step {}: loss {:.4f}{}>", test.step, test.loss,
                           test.accuracy ? fmt::format(", accuracy {:.2f}%", 100 * *test.accuracy) : "");
      });
  const auto last = [](const Trained& t) { return t.result.tests.empty() ? nullptr : &t.result.tests.back(); };
  nb::class_<Trained>(module, "TrainResult", "What train returns: losses, tests, memory and time.")
      .def_prop_ro(
          "steps", [](const Trained& t) { return t.result.steps; }, "Number of steps done in all.")
      .def_prop_ro(
          "first_step", [](const Trained& t) { return t.result.first_step; },
          "Number of steps that the checkpoint had done.")
      .def_prop_ro("interrupted", [](const Trained& t) { return t.result.interrupted; })
      .def_prop_ro(
          "unwritten", [](const Trained& t) { return t.result.unwritten; },
          "Why the last checkpoint could not be written; empty if it was.")
      .def_prop_ro(
          "losses",
          [](nb::pointer_and_handle<Trained> t) { return view(std::span<const float>(t.p->result.losses), t.h); },
          "The loss of every step, those before the checkpoint included.")
      .def_prop_ro("tests", [](const Trained& t) { return t.result.tests; })
      .def_prop_ro(
          "loss",
          [](const Trained& t) {
            return t.result.losses.empty() ? std::nullopt : std::optional(t.result.losses.back());
          },
          "The loss of the last step.")
      .def_prop_ro(
          "accuracy", [last](const Trained& t) { return last(t) ? last(t)->accuracy : std::nullopt; },
          "The accuracy of the last test.")
      .def_prop_ro(
          "seconds", [](const Trained& t) { return t.result.seconds; },
          "Time of the steps from first_step on, without tests and checkpoints.")
      .def_prop_ro(
          "planned_bytes", [](const Trained& t) { return t.result.planned_bytes; }, "Bytes of the arena.")
      .def_prop_ro(
          "measured_peak_bytes", [](const Trained& t) { return t.result.measured_peak_bytes; },
          "Number of bytes of the arena up to the highest one that was written; None if no step was left to do.")
      .def_prop_ro(
          "digest", [](const Trained& t) { return t.result.digest; },
          "A hash of all weights and of the optimizer's state: 16 hex digits.")
      .def_prop_ro(
          "schedule", [](const Trained& t) -> const core::Schedule& { return t.decision.schedule; },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "plan", [](const Trained& t) -> const core::Plan& { return t.decision.executed_plan(); },
          nb::rv_policy::reference_internal)
      .def(
          "to_json", [](const Trained& t) { return report::json_text(report::train_json(t.outcome())); },
          "The object that `cairn train --json` prints, as text.")
      .def("report", file_of<Trained>([](const Trained& t) { return report::train_page(t.outcome()); }), "path"_a,
           kReport, "Writes the HTML page of `cairn train --report`.")
      .def("__str__", [](const Trained& t) { return report::train_table(t.outcome()); })
      .def("__repr__", [](const Trained& t) {
        return fmt::format("<cairn.TrainResult of {} steps on {}: loss {:.4g}>", t.result.steps, t.data->name,
                           t.result.losses.empty() ? 0.0F : t.result.losses.back());
      });
}

void bind_data(nb::module_& module) {
  using models::Dataset;
  using Handle = nb::pointer_and_handle<Dataset>;
  nb::class_<Dataset>(module, "Dataset", "A small data set that is part of this library.")
      .def_prop_ro("name", [](const Dataset& d) { return std::string(d.name); })
      .def_prop_ro(
          "kind", [](const Dataset& d) { return d.kind == Dataset::Kind::images ? "images" : "text"; },
          "'images' or 'text'.")
      .def_ro("classes", &Dataset::classes, "Number of possible labels, or of different characters.")
      .def_ro("training", &Dataset::training,
              "Number of examples for training, which are the first ones. The others are for tests.")
      .def_prop_ro(
          "images",
          [](Handle d) {
            using Images = nb::ndarray<nb::numpy, const float, nb::ndim<3>, nb::c_contig>;
            if (d.p->pixels.empty()) return std::optional<Images>();
            return std::optional(Images(d.p->pixels.data(),
                                        {static_cast<std::size_t>(d.p->examples), static_cast<std::size_t>(d.p->height),
                                         static_cast<std::size_t>(d.p->width)},
                                        d.h));
          },
          "The images [N, H, W]. Their mean is 0 and their standard deviation 1 over the training part. None for a "
          "text.")
      .def_prop_ro(
          "labels", [](Handle d) { return view(std::span<const std::int32_t>(d.p->labels), d.h); },
          "The labels of the images [N]. Of a text, the characters, as numbers of entries of `alphabet`.")
      .def_prop_ro(
          "alphabet",
          [](const Dataset& d) { return d.kind == Dataset::Kind::text ? std::optional(d.alphabet) : std::nullopt; },
          "The different characters of a text; None for images.")
      .def("__len__", [](const Dataset& d) { return d.examples; })
      .def("__repr__", [](const Dataset& d) {
        return fmt::format("<cairn.Dataset '{}': {} examples, {} of them for training>", d.name, d.examples,
                           d.training);
      });
  module.def("datasets", [] {
    nb::list list;
    for (const models::DatasetInfo& info : models::datasets())
      list.append(nb::make_tuple(std::string(info.name), std::string(info.summary)));
    return list;
  });
  module.def("load_dataset", &models::load_dataset, "name"_a,
             "Returns a data set that is part of this library; datasets() lists them.");
}

}  // namespace

void bind_train(nb::module_& module) {
  bind_options(module);
  bind_train_result(module);
  bind_data(module);
  module.def("train", &train, "graph"_a, "data"_a, "request"_a, "search"_a, "schedule"_a.none(), "backend"_a,
             "precision"_a.none(), "learning_rate"_a.none(), "options"_a, "progress"_a.none());
}

}  // namespace cairn::python
