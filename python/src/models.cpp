#include <nanobind/stl/map.h>

#include <map>
#include <string>

#include "cairn/models/registry.h"
#include "cairn/pipeline/graph_source.h"
#include "cairn/python/src/bindings.h"
#include "cairn/solvers/fit/problem.h"

namespace cairn::python {
namespace {

nb::list models() {
  nb::list list;
  for (const models::ModelInfo& model : models::registry()) {
    nb::list options;
    for (const models::ModelOption& option : model.options)
      options.append(
          nb::make_tuple(std::string(option.name), option.default_value, option.minimum, std::string(option.help)));
    list.append(nb::make_tuple(std::string(model.name), std::string(model.summary), options));
  }
  return list;
}

core::Graph build_model(std::string name, const std::map<std::string, std::int64_t>& values, bool forward,
                        bool unit_cost, bool weight_grads_in_arena, std::string optimizer,
                        const models::UpdateOptions& update, const std::string& granularity) {
  pipeline::GraphSource source;
  source.name = std::move(name);
  source.forward = forward;
  source.unit_cost = unit_cost;
  source.options.values = {values.begin(), values.end()};
  source.options.weight_grads_in_arena = weight_grads_in_arena;
  source.options.optimizer = std::move(optimizer);
  source.options.update = update;
  source.options.granularity = models::granularity_from_string(granularity);
  const nb::gil_scoped_release release;
  return source.build();
}

}  // namespace

void bind_models(nb::module_& module) {
  nb::class_<models::UpdateOptions>(module, "UpdateOptions")
      .def(
          "__init__",
          [](models::UpdateOptions* self, double rate, double beta1, double beta2, double eps, double decay,
             double clip) { new (self) models::UpdateOptions{rate, beta1, beta2, eps, decay, clip}; },
          "learning_rate"_a, "beta1"_a, "beta2"_a, "eps"_a, "weight_decay"_a, "clip"_a);
  module.def("models", &models);
  module.def("build_model", &build_model, "name"_a, "values"_a, "forward"_a, "unit_cost"_a, "weight_grads_in_arena"_a,
             "optimizer"_a, "update"_a, "granularity"_a);
}

}  // namespace cairn::python
