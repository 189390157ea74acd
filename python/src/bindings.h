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

#include "cairn/core/graph.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"

/// The extension module cairn._cairn: the library's types as Python classes, and its long calls without the GIL. What
/// is convenience in Python is written in Python (python/cairn/).
namespace cairn::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

// One function a file.
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

/// A one-dimensional numpy array that is read only.
template <class T>
using View = nb::ndarray<nb::numpy, const T, nb::ndim<1>, nb::c_contig>;

/// Memory that `owner` keeps alive as a numpy array, without a copy.
template <class T>
View<T> view(const T* data, std::size_t count, nb::handle owner) {
  static const T nothing{};
  return View<T>(data == nullptr ? &nothing : data, {count}, owner);
}
template <class T>
View<T> view(std::span<const T> values, nb::handle owner) {
  return view(values.data(), values.size(), owner);
}
/// A vector's memory, which the array then owns.
template <class T>
View<T> array_of(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return view(kept->data(), kept->size(), owner);
}
/// Rows of trivially copyable structs as a numpy array with named columns: `dtype` as numpy.dtype takes it.
nb::object records(const void* rows, std::size_t bytes, const nb::object& dtype);

/// Whole numbers from a sequence or an array of them, whatever its type. Throws InputError naming `what` on others.
std::vector<std::int64_t> integers(nb::handle values, std::string_view what);
/// The same of node ids.
std::vector<core::NodeId> node_ids(nb::handle values, std::string_view what);
/// A whole number; InputError naming `what`.
std::int64_t integer(nb::handle value, std::string_view what);
/// A node id, or (node id, output index); None: none.
core::OutputRef output_ref(nb::handle value, std::string_view what);
/// A Schedule, or a sequence of node ids.
core::Schedule schedule_of(nb::handle value);
/// A method that Python code does: function(self).
inline auto in_module(const char* module, const char* function) {
  return [module, function](nb::handle self) { return nb::module_::import_(module).attr(function)(self); };
}
/// A message of the library in this package's words: budget= for --budget.
/// A path as open() takes it: text or os.PathLike.
std::string path_of(nb::handle path);
/// Throws InputError that names `v` unless it is a node of the graph.
void require_node(const core::Graph& graph, std::int64_t v);

/// What Python calls an Evaluation.
struct Evaluation {
  core::Evaluation of;
  std::string defect;  ///< in words; empty: none
};
Evaluation evaluation_of(const core::Graph& graph, const core::Evaluation& evaluation);

/// Throws the class of cairn._errors with that name.
[[noreturn]] void raise(const char* class_name, const std::string& message, const nb::dict& attributes = {});

}  // namespace cairn::python
