#include "cairn/runtime/executor.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/precision.h"
#include "cairn/pipeline/backend.h"
#include "cairn/python/src/answer.h"
#include "cairn/python/src/bindings.h"
#include "cairn/python/src/call.h"
#include "cairn/python/src/choice.h"
#include "cairn/python/src/device_array.h"
#include "cairn/runtime/support/residents.h"

namespace cairn::python {
namespace {

using GivenArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using WritableArray = nb::ndarray<nb::c_contig, nb::device::cpu>;

constexpr std::int64_t kArenaAlignment = 256;  // in bytes, as runtime::ArenaView requires

/// Returns the part of an array that serves as the arena, i.e. the memory for all buffers of a step. The part begins at
/// the first address that is a multiple of kArenaAlignment. Throws InputError if the array is not in the backend's
/// memory, or if `bytes` bytes do not fit into the part.
runtime::ArenaView arena_in(nb::handle array, const pipeline::Backend& backend, std::int64_t bytes) {
  const bool on_device = nb::isinstance<DeviceArray>(array);
  if (on_device != (backend.name() != "host"))
    throw core::InputError(on_device ? "arena= is in memory of a GPU, but the host executes the step; give an array in "
                                       "memory of the host"
                                     : "arena= is in memory of the host, but a GPU executes the step; give an array in "
                                       "its memory");
  void* data = nullptr;
  std::int64_t given = 0;
  if (on_device) {
    const auto& device = nb::cast<const DeviceArray&>(array);
    data = device.data;
    given = device.elements();
  } else {
    const auto host = nb::cast<WritableArray>(array);
    data = host.data();
    given = static_cast<std::int64_t>(host.nbytes());
  }
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::int64_t skipped =
      core::align_up(static_cast<std::int64_t>(address), kArenaAlignment) - static_cast<std::int64_t>(address);
  if (given - skipped < bytes)
    throw core::InputError(
        fmt::format("arena= has {} bytes, but the plan needs {}, which begin at the first multiple of {}, so {} more; "
                    "lower the budget or give {} bytes",
                    given, bytes, kArenaAlignment, skipped, bytes + kArenaAlignment - 1));
  return {static_cast<std::byte*>(data) + skipped, given - skipped};
}

/// The base of the Python class Executor: a graph that a backend has loaded. Several threads may call its members; they
/// take turns.
class Loaded {
 public:
  Loaded(const core::Graph& given, const pipeline::Request& request, const SearchArguments& search, nb::handle schedule,
         const std::string& backend, const std::optional<std::string>& precision, bool poison, nb::object arena,
         std::uintptr_t stream, int streams, nb::object progress)
      : backend_(pipeline::open_backend(backend)), given_arena_(std::move(arena)) {
    backend_->require_streams(streams, request.overlap_steps, poison);
    std::optional<core::Precision> stored;
    if (precision) stored = core::precision_from_string(*precision);
    graph_ = pipeline::prepare(*backend_, given, stored);
    Call call(std::move(progress));
    decision_ = choose(*backend_, graph_.prepared, request, search, schedule, 0, call).decision;
    runtime::ArenaView memory;
    if (!given_arena_.is_none()) memory = arena_in(given_arena_, *backend_, decision_.executed_plan().bytes);
    const nb::gil_scoped_release release;
    executor_ = backend_->load({.graph = graph_.prepared,
                                .schedule = decision_.schedule,
                                .plan = decision_.executed_plan(),
                                .precision = graph_.precision,
                                .seed = search.seed,
                                .poison = poison,
                                .arena = memory,
                                .stream = reinterpret_cast<void*>(stream),
                                .streams = streams});
  }

  const core::Graph& graph() const { return graph_.prepared; }
  const fit::Decision& decision() const { return decision_; }
  const pipeline::Backend& backend() const { return *backend_; }

  /// Calls work(executor) without the GIL (Python's global interpreter lock), and returns the result of `work`. If
  /// several threads call this function, their work runs one after the other.
  template <class Work>
  auto alone(const Work& work) {
    const nb::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    return work(*executor_);
  }

 private:
  std::unique_ptr<pipeline::Backend> backend_;
  /// keeps the memory of the caller's arena alive; None: the executor has allocated the arena
  nb::object given_arena_;
  pipeline::PreparedGraph graph_;
  fit::Decision decision_;
  std::unique_ptr<runtime::Executor> executor_;
  std::mutex mutex_;
};

core::ElementType type_of(const nb::dlpack::dtype& type) {
  if (type == nb::dtype<float>()) return core::ElementType::f32;
  if (type == nb::dtype<std::int32_t>()) return core::ElementType::i32;
  throw core::InputError("an array must have the type float32 or int32");
}
core::ElementType type_of(const DeviceArray& array) {
  if (array.dtype == "float32") return core::ElementType::f32;
  if (array.dtype == "int32") return core::ElementType::i32;
  if (array.dtype == "bfloat16") return core::ElementType::bf16;
  throw core::InputError("an array in memory of a GPU must have the type float32, int32 or bfloat16");
}

/// Returns the name of the numpy type in which Python sets and gets elements of the given type.
const char* numpy_type(core::ElementType type) { return type == core::ElementType::i32 ? "int32" : "float32"; }

/// Returns (name, shape, numpy type, kind) of each resident tensor that the step uses.
nb::list residents(const Loaded& loaded) {
  const core::Graph& graph = loaded.graph();
  const std::vector<bool> executed = runtime::executed_residents(graph);
  nb::list list;
  for (std::size_t i = 0; i < executed.size(); ++i) {
    const core::Resident& resident = graph.residents()[i];
    if (executed[i])
      list.append(nb::make_tuple(resident.name, tuple_of(resident.shape), numpy_type(resident.type),
                                 std::string(kind_of(resident.role))));
  }
  return list;
}

template <class Array>
core::Shape shape_of(const Array& array) {
  return core::Shape(array.shape_ptr(), array.shape_ptr() + array.ndim());
}

runtime::TensorView view_of(const GivenArray& array) { return {array.data(), type_of(array.dtype()), shape_of(array)}; }
runtime::MutableTensorView view_of(const WritableArray& array) {
  return {array.data(), type_of(array.dtype()), shape_of(array)};
}
runtime::MutableTensorView view_of(const DeviceArray& array) {
  runtime::MutableTensorView view(array.data, type_of(array), array.shape, true);
  view.stream = array.stream;
  return view;
}

runtime::TensorView values_of(const GivenArray& array) { return view_of(array); }
runtime::TensorView values_of(const DeviceArray& array) {
  const runtime::MutableTensorView view = view_of(array);
  runtime::TensorView values(view.data, view.type, view.shape, true);
  values.stream = view.stream;
  return values;
}

template <class Array>
void give(Loaded& loaded, const std::string& name, const Array& array, bool staged) {
  const runtime::TensorView values = values_of(array);
  loaded.alone(
      [&](runtime::Executor& executor) { staged ? executor.stage(name, values) : executor.set(name, values); });
}
template <class Array>
void check(Loaded& loaded, const std::string& name, const Array& array) {
  loaded.alone([&](runtime::Executor& executor) { executor.require_values(name, values_of(array)); });
}

template <class Array>
void get(Loaded& loaded, const std::string& name, const Array& array) {
  loaded.alone([&](runtime::Executor& executor) { executor.get(name, view_of(array)); });
}
template <class Array>
void get_output(Loaded& loaded, const std::string& node, const Array& array, std::int32_t output) {
  loaded.alone([&](runtime::Executor& executor) { executor.get_output(node, view_of(array), output); });
}

/// Returns (shape, numpy type) of a kept output. Throws InputError if the node does not keep this output.
nb::tuple kept_output(Loaded& loaded, const std::string& name, std::int32_t output) {
  const core::Graph& graph = loaded.graph();
  const core::NodeId v = node_id(graph, name);
  const core::Op* const op = graph.op(v);
  if (op == nullptr || output < 0 || output >= core::output_count(op->kind))
    throw core::InputError(fmt::format("node '{}' has no output {} with elements", name, output));
  if (!graph.value_kept(graph.outputs(v)[static_cast<std::size_t>(output)]))
    throw core::InputError(
        fmt::format("output {} of node '{}' is not kept; build the graph of the executor with graph.with_kept(['{}'])",
                    output, name, name));
  return nb::make_tuple(tuple_of(core::output_shape(*op, output)), numpy_type(core::output_type(*op, output)));
}

void bind_report(nb::module_& module) {
  nb::class_<runtime::StepReport>(module, "StepReport", "What was measured during one step of an Executor.")
      .def_ro("seconds", &runtime::StepReport::seconds)
      .def_ro("live_peak_bytes", &runtime::StepReport::live_peak_bytes,
              "The largest number of bytes in live buffers at one node.")
      .def("__repr__", [](const runtime::StepReport& report) {
        return fmt::format("<cairn.StepReport {:.4g} s>", report.seconds);
      });
}

void bind_facts(nb::class_<Loaded>& loaded) {
  loaded
      .def_prop_ro(
          "graph", [](const Loaded& l) { return l.graph(); },
          "The graph that is executed. Its scratch is what the kernels need.")
      .def_prop_ro(
          "schedule", [](const Loaded& l) -> const core::Schedule& { return l.decision().schedule; },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "plan", [](const Loaded& l) -> const core::Plan& { return l.decision().executed_plan(); },
          nb::rv_policy::reference_internal)
      .def_prop_ro("backend", [](const Loaded& l) { return l.backend().name(); })
      .def_prop_ro("device", [](const Loaded& l) { return l.backend().device(); })
      .def_prop_ro(
          "planned_bytes", [](const Loaded& l) { return l.decision().executed_plan().bytes; }, "Bytes of the arena.")
      .def_prop_ro(
          "measured_peak_bytes",
          [](Loaded& l) { return l.alone([](runtime::Executor& executor) { return executor.measured_peak_bytes(); }); },
          "Number of bytes of the arena up to the highest one that was written. Reads the whole arena.")
      .def("_residents", &residents)
      .def("_kept_output", &kept_output, "node"_a, "output"_a);
}

void bind_steps(nb::class_<Loaded>& loaded) {
  loaded
      .def(
          "step", [](Loaded& l) { return l.alone([](runtime::Executor& executor) { return executor.run(); }); },
          "Runs one training step and waits for its end.")
      .def(
          "enqueue", [](Loaded& l) { l.alone([](runtime::Executor& executor) { executor.enqueue(); }); },
          "Starts one training step. A GPU executes it while the caller goes on; the host executes it at once.")
      .def(
          "wait", [](Loaded& l) { l.alone([](runtime::Executor& executor) { executor.wait(); }); },
          "Waits for the end of all steps that were enqueued.")
      .def(
          "reset", [](Loaded& l) { l.alone([](runtime::Executor& executor) { executor.reset(); }); },
          "Gives all resident tensors the values that they began with.")
      .def(
          "set_dropout_seed",
          [](Loaded& l, std::uint64_t seed) {
            l.alone([&](runtime::Executor& executor) { executor.set_dropout_seed(seed); });
          },
          "seed"_a,
          "Makes the dropouts of the following steps draw other elements for every other seed. With 0, the default, "
          "the\n"
          "graph's own seeds alone decide.")
      .def("_give", &give<GivenArray>, "name"_a, "array"_a, "staged"_a)
      .def("_give", &give<DeviceArray>, "name"_a, "array"_a, "staged"_a)
      .def("_check", &check<GivenArray>, "name"_a, "array"_a)
      .def("_check", &check<DeviceArray>, "name"_a, "array"_a)
      .def("_get", &get<WritableArray>, "name"_a, "array"_a)
      .def("_get", &get<DeviceArray>, "name"_a, "array"_a)
      .def("_get_output", &get_output<WritableArray>, "node"_a, "array"_a, "output"_a)
      .def("_get_output", &get_output<DeviceArray>, "node"_a, "array"_a, "output"_a);
}

}  // namespace

void bind_executor(nb::module_& module) {
  bind_report(module);
  nb::class_<Loaded> loaded(module, "Loaded", "A graph that a backend has loaded: the base of cairn.Executor.");
  loaded.def(
      nb::init<const core::Graph&, const pipeline::Request&, const SearchArguments&, nb::handle, const std::string&,
               const std::optional<std::string>&, bool, nb::object, std::uintptr_t, int, nb::object>(),
      "graph"_a, "request"_a, "search"_a, "schedule"_a.none(), "backend"_a, "precision"_a.none(), "poison"_a,
      "arena"_a.none(), "stream"_a, "streams"_a, "progress"_a.none());
  bind_facts(loaded);
  bind_steps(loaded);
}

}  // namespace cairn::python
