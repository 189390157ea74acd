#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/solution.h"

namespace cairn::python {

namespace nb = nanobind;

/// Runs a long call on a separate thread, while the calling thread waits without the GIL (Python's global interpreter
/// lock). Several times a second the calling thread handles signals and calls the progress callback. So the work never
/// waits for Python, unless it calls ask_python(), and callbacks and signal handlers run on the thread of the caller. A
/// Call runs one piece of work at a time.
class Call {
 public:
  /// Takes a Python callback progress(first, second, seconds), or None. The arguments are those of the latest tell();
  /// for a search they are peak, cost and seconds. The callback stops the work by returning False or raising an
  /// exception.
  explicit Call(nb::object progress = nb::none()) : callback_(std::move(progress)) {}

  const std::atomic<bool>* stop() const { return &stop_; }
  bool tells() const { return !callback_.is_none(); }
  /// Stores progress, which the calling thread will pass to the callback. May be called from any thread.
  void tell(std::int64_t first, std::int64_t second, double seconds);
  /// Returns a SolveOptions::progress that calls tell(); empty if there is no callback.
  std::function<void(const solvers::Progress&)> progress();

  /// Runs `question` with the GIL on the thread that called run(), and throws any exception that `question` throws. The
  /// work calls this function when it needs Python.
  void ask_python(const std::function<void()>& question);

  /// Runs the work, and throws any exception that the work throws. Exceptions that callbacks or signal handlers raise
  /// meanwhile are stored; raise_pending() raises them.
  void run(const std::function<void()>& work);

  bool stopped() const { return stop_.load(); }
  bool interrupted() const { return interrupted_; }
  /// Raises the exception that a callback or a signal handler has raised, unless that was KeyboardInterrupt.
  void raise_pending();

 private:
  /// Passes stored progress to the callback, and lets Python handle signals. The caller must hold the GIL.
  void look_around();
  /// Runs the function that was passed to ask_python(); there must be one. The caller must hold the GIL.
  void answer();
  /// Stores the exception that a callback or a signal handler has raised, and stops the work.
  void keep(nb::python_error&& error);

  nb::object callback_;
  std::atomic<bool> stop_ = false;
  bool interrupted_ = false;
  std::optional<nb::python_error> raised_;

  std::mutex mutex_;
  std::condition_variable wake_;
  struct Told {
    std::int64_t first, second;
    double seconds;
  };
  std::optional<Told> latest_;                       ///< latest progress that the callback has not received yet
  const std::function<void()>* question_ = nullptr;  ///< function of ask_python() that has not run yet
  std::exception_ptr refusal_;                       ///< exception that the latest function of ask_python() threw
  bool done_ = false;
};

}  // namespace cairn::python
