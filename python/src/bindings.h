#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"

/// This header declares the parts of the extension module cairn._cairn, which makes the library's types available as
/// Python classes. Long calls release the GIL (Python's global interpreter lock). Convenience functions, written in
/// Python, are in python/cairn/.
namespace cairn::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

// Each function adds one part of the library to the module. The file that is named after the part defines the function.
void bind_errors(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_schedule(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_answer(nb::module_& module);
void bind_curve(nb::module_& module);
void bind_info(nb::module_& module);
void bind_sweep(nb::module_& module);
void bind_run(nb::module_& module);
void bind_models(nb::module_& module);
void bind_builder_of_models(nb::module_& module);
void bind_device_array(nb::module_& module);
void bind_executor(nb::module_& module);
void bind_train(nb::module_& module);

template <class T>
using View = nb::ndarray<nb::numpy, const T, nb::ndim<1>, nb::c_contig>;

/// Returns a numpy array over `count` elements at `data`, without copying them. `owner` must own the elements; the
/// array keeps it alive.
template <class T>
View<T> view(const T* data, std::size_t count, nb::handle owner) {
  static const T nothing{};
  return View<T>(data == nullptr ? &nothing : data, {count}, owner);
}
template <class T>
View<T> view(std::span<const T> values, nb::handle owner) {
  return view(values.data(), values.size(), owner);
}
/// Moves a vector into a numpy array without copying its elements.
template <class T>
View<T> array_of(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return view(kept->data(), kept->size(), owner);
}
/// Copies structs (`bytes` bytes in all) to a numpy array with named columns, one row per struct. `dtype` describes the
/// columns for numpy.dtype(). The structs must be trivially copyable.
nb::object records(const void* rows, std::size_t bytes, const nb::object& dtype);

/// Reads whole numbers from a sequence or an array of any type. Throws InputError for anything else; the message calls
/// the argument `what`.
std::vector<std::int64_t> integers(nb::handle values, std::string_view what);
/// Reads node ids from a sequence or an array of any type. Throws InputError for anything else, as integers() does.
std::vector<core::NodeId> node_ids(nb::handle values, std::string_view what);
/// Reads a whole number. Throws InputError for anything else; the message calls the argument `what`.
std::int64_t integer(nb::handle value, std::string_view what);
/// Reads which output of a node is meant: a node id stands for the node's first output, a pair (node id, output index)
/// for any output, and None for no output.
core::OutputRef output_ref(nb::handle value, std::string_view what);
/// Converts a Schedule, or a sequence of node ids, to a schedule.
core::Schedule schedule_of(nb::handle value);
/// A schedule that the caller passed, with the offsets of its plan if it has one.
struct GivenSchedule {
  core::Schedule schedule;
  std::vector<std::int64_t> offsets;  ///< offsets_of() the plan that came with the schedule; empty if there was none
};
/// Converts a Schedule, a sequence of node ids, or an object with attributes `schedule` and `plan`, such as an Answer.
GivenSchedule given_schedule(nb::handle value);
/// Returns a method that calls the Python function module.function(self).
inline auto in_module(const char* module, const char* function) {
  return [module, function](nb::handle self) { return nb::module_::import_(module).attr(function)(self); };
}
/// Reads a path: text or os.PathLike.
std::string path_of(nb::handle path);
/// Throws InputError if `v` is not the id of a node of the graph; the message contains `v`.
void require_node(const core::Graph& graph, std::int64_t v);

/// Returns the id of the node with this name. Throws InputError if there is no such node; the message suggests a
/// similar name. Takes time linear in the number of nodes.
core::NodeId node_id(const core::Graph& graph, const std::string& name);
/// Returns the name of a role, such as "weight" or "data". In Python, it is the `kind` of a Resident.
std::string_view kind_of(core::Resident::Role role);
/// Returns a shape as a tuple of its extents.
nb::tuple tuple_of(const core::Shape& shape);

/// The Python class Evaluation: peak, cost and validity of a schedule.
struct Evaluation {
  core::Evaluation of;
  std::string defect;  ///< what is wrong with the schedule; empty if it is valid
};
Evaluation evaluation_of(const core::Graph& graph, const core::Evaluation& evaluation);

/// Raises an exception of the class `class_name` of cairn._errors.
[[noreturn]] void raise(const char* class_name, const std::string& message, const nb::dict& attributes = {});
/// Raises Interrupted. `best` is the best result so far.
[[noreturn]] void raise_interrupted(const std::string& message, const nb::object& best);

/// Returns a Python method that writes the text page(self) to a file. kReport and kTrace are type signatures of such
/// methods.
template <class T, class Page>
auto file_of(const Page& page) {
  return [page](const T& self, nb::handle path) { core::write_file(path_of(path), page(self)); };
}
inline const nb::sig kReport("def report(self, path: str | os.PathLike[str]) -> None");
inline const nb::sig kTrace("def trace(self, path: str | os.PathLike[str]) -> None");

}  // namespace cairn::python
