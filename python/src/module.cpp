
#include "cairn/core/error.h"
#include "cairn/core/support/text.h"
#include "cairn/core/threads.h"
#include "cairn/core/version.h"
#include "cairn/python/src/bindings.h"
#include "cairn/runtime/support/blas_library.h"

namespace {

/// Parses a size above 0, such as "8GiB". Throws InputError for a percentage or anything else; the message calls it
/// `name`.
std::int64_t parse_bytes(const std::string& text, const std::string& name) {
  using namespace cairn;
  std::int64_t bytes = 0;
  if (core::size_fault(text, bytes).empty()) return bytes;
  throw core::InputError(name + " '" + text + "' is not a size; give bytes above 0 (2000000) or a size (8GiB, 500MB)");
}

/// Parses a duration, such as "500ms". Throws InputError for anything else; the message begins with `name`.
double parse_seconds(const std::string& text, const std::string& name) {
  using namespace cairn;
  try {
    return core::parse_seconds(text);
  } catch (const core::InputError& error) {
    throw core::InputError(name + ": " + error.what());
  }
}

}  // namespace

NB_MODULE(_cairn, module) {
  using namespace cairn;
  // At exit, an exception that is still alive can hold objects of this module. nanobind would report these objects as
  // leaks, so the report is off.
  nanobind::set_leak_warnings(false);
  python::bind_errors(module);
  python::bind_graph(module);
  python::bind_schedule(module);
  python::bind_plan(module);
  python::bind_answer(module);
  python::bind_curve(module);
  python::bind_info(module);
  python::bind_sweep(module);
  python::bind_run(module);
  python::bind_models(module);
  python::bind_builder_of_models(module);
  python::bind_device_array(module);
  python::bind_executor(module);
  python::bind_train(module);
  module.attr("__version__") = std::string(core::kVersion);
  module.def("format_bytes", &core::format_bytes, nanobind::arg("bytes"), "1536 -> '1.50 KiB'.");
  module.def("parse_bytes", &parse_bytes, nanobind::arg("text"), nanobind::arg("name"));
  module.def(
      "parse_budget",
      [](const std::string& text, std::int64_t baseline_peak) { return core::parse_budget(text, baseline_peak); },
      nanobind::arg("text"), nanobind::arg("baseline_peak"));
  module.def("parse_seconds", &parse_seconds, nanobind::arg("text"), nanobind::arg("name"));
  module.def(
      "_set_blas_fallback", [](const std::string& path) { runtime::blas_fallback() = path; }, nanobind::arg("path"));
  module.def("thread_count", &core::thread_count, "Threads that searches, simulation and kernels use.");
  module.def("set_thread_count", &core::set_thread_count, nanobind::arg("threads"),
             "Sets the number of threads for the whole process; 0 restores the default.");
}
