#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"
#include "cairn/pipeline/request.h"
#include "cairn/python/src/bindings.h"
#include "cairn/report/support/words.h"
#include "cairn/solvers/fit/problem.h"

namespace cairn::python {
namespace {

nb::object error_class(const char* name) { return nb::module_::import_("cairn._errors").attr(name); }

void set_error(const char* name, const char* message) {
  PyErr_SetObject(error_class(name).ptr(), nb::str(message).ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const core::InputError& error) {
    set_error("InputError", error.what());
  } catch (const core::DeviceError& error) {
    set_error("DeviceError", error.what());
  } catch (const core::InterruptedError& error) {
    set_error("Interrupted", error.what());
  } catch (const pipeline::NoRoomError& error) {
    set_error("InfeasibleError", report::no_room_text(error).c_str());
  } catch (const core::DefectError& error) {
    set_error("DefectError", error.what());
  } catch (const core::Error& error) {
    set_error("Error", error.what());
  }
}

/// Spells an option of the command as a Python argument for messages, such as `time_limit='5s'`. A whole number gets no
/// quotes: `work_limit=5`.
std::string spell_for_python(std::string_view name, std::string_view value) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  const bool bare = value.find_first_not_of("0123456789", value.starts_with('-') ? 1 : 0) == std::string_view::npos ||
                    value.front() == '\'';
  return text + (bare ? fmt::format("={}", value) : fmt::format("='{}'", value));
}

}  // namespace

void bind_errors(nb::module_&) {
  core::spell_options(spell_for_python);
  nb::register_exception_translator(translate);
}

void raise(const char* class_name, const std::string& message, const nb::dict& attributes) {
  const nb::object type = error_class(class_name);
  const nb::object error = type(message, **attributes);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

void raise_interrupted(const std::string& message, const nb::object& best) {
  nb::dict attributes;
  attributes["best"] = best;
  raise("Interrupted", message, attributes);
}

std::int64_t integer(nb::handle value, std::string_view what) {
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    throw core::InputError(fmt::format("{} must be a whole number, not {}", what, nb::repr(value).c_str()));
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) throw core::InputError(fmt::format("{} is out of range: {}", what, nb::repr(value).c_str()));
  return number;
}

namespace {

core::NodeId narrowed(std::int64_t number, std::string_view what) {
  if (number < std::numeric_limits<core::NodeId>::min() || number > std::numeric_limits<core::NodeId>::max())
    throw core::InputError(fmt::format("{} is out of range: {}", what, number));
  return static_cast<core::NodeId>(number);
}

template <class T>
std::vector<std::int64_t> elements(const nb::ndarray<nb::ro, nb::device::cpu>& array) {
  std::vector<std::int64_t> values(array.shape(0));
  const T* const data = static_cast<const T*>(array.data());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int64_t>(data[static_cast<std::int64_t>(i) * array.stride(0)]);
  return values;
}

}  // namespace

std::vector<std::int64_t> integers(nb::handle values, std::string_view what) {
  nb::ndarray<nb::ro, nb::device::cpu> array;
  if (nb::ndarray_check(values) && nb::try_cast(values, array)) {
    if (array.ndim() != 1) throw core::InputError(fmt::format("{} must have one dimension", what));
    const nb::dlpack::dtype type = array.dtype();
    if (type == nb::dtype<std::int64_t>()) return elements<std::int64_t>(array);
    if (type == nb::dtype<std::int32_t>()) return elements<std::int32_t>(array);
    if (type == nb::dtype<std::int16_t>()) return elements<std::int16_t>(array);
    if (type == nb::dtype<std::int8_t>()) return elements<std::int8_t>(array);
    if (type == nb::dtype<std::uint32_t>()) return elements<std::uint32_t>(array);
    if (type == nb::dtype<std::uint16_t>()) return elements<std::uint16_t>(array);
    if (type == nb::dtype<std::uint8_t>()) return elements<std::uint8_t>(array);
    if (type == nb::dtype<bool>()) return elements<bool>(array);
  }
  const nb::object iterator = nb::steal(PyObject_GetIter(values.ptr()));
  if (!iterator.is_valid()) {
    PyErr_Clear();
    throw core::InputError(
        fmt::format("{} must be a sequence of whole numbers, not {}", what, nb::repr(values).c_str()));
  }
  std::vector<std::int64_t> numbers;
  while (true) {
    const nb::object item = nb::steal(PyIter_Next(iterator.ptr()));
    if (!item.is_valid()) break;
    numbers.push_back(integer(item, what));
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return numbers;
}

std::vector<core::NodeId> node_ids(nb::handle values, std::string_view what) {
  const std::vector<std::int64_t> numbers = integers(values, what);
  std::vector<core::NodeId> nodes;
  nodes.reserve(numbers.size());
  for (const std::int64_t number : numbers) nodes.push_back(narrowed(number, what));
  return nodes;
}

core::OutputRef output_ref(nb::handle value, std::string_view what) {
  if (value.is_none()) return {};
  if (!nb::isinstance<nb::tuple>(value)) return {narrowed(integer(value, what), what)};
  const auto pair = nb::borrow<nb::tuple>(value);
  if (pair.size() != 2)
    throw core::InputError(
        fmt::format("{} must be a node id or (node id, output), not {}", what, nb::repr(value).c_str()));
  return {narrowed(integer(pair[0], what), what), narrowed(integer(pair[1], what), what)};
}

GivenSchedule given_schedule(nb::handle value) {
  if (!nb::hasattr(value, "schedule")) return {schedule_of(value), {}};
  GivenSchedule given{schedule_of(value.attr("schedule")), {}};
  const nb::object plan = nb::getattr(value, "plan", nb::none());
  if (nb::isinstance<core::Plan>(plan)) given.offsets = core::offsets_of(nb::cast<const core::Plan&>(plan));
  return given;
}

core::Schedule schedule_of(nb::handle value) {
  if (nb::isinstance<core::Schedule>(value)) return *nb::inst_ptr<core::Schedule>(value);
  return {node_ids(value, "a schedule")};
}

std::string path_of(nb::handle path) {
  return nb::cast<std::string>(nb::module_::import_("os").attr("fsdecode")(path));
}

void require_node(const core::Graph& graph, std::int64_t v) {
  if (v < 0 || v >= graph.node_count())
    throw core::InputError(fmt::format("the graph has no node {}; it has {}, numbered from 0", v, graph.node_count()));
}

nb::object records(const void* rows, std::size_t bytes, const nb::object& dtype) {
  const nb::bytes raw(rows, bytes);
  return nb::module_::import_("numpy").attr("frombuffer")(raw, dtype);
}

}  // namespace cairn::python
