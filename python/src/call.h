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

/// Runs the work of a long call in a thread of its own while the calling thread waits without the GIL. Several times a
/// second, the calling thread handles signals and reports progress. So the work never waits for Python, and callbacks
/// and signal handlers run on the thread that made the call. Runs one piece of work at a time.
class Call {
 public:
  /// Takes a Python callback for progress. It is called as progress(first, second, seconds) with the latest arguments
  /// of tell(); for a search, these are peak, cost and seconds. The callback stops the work by returning False or by
  /// raising an exception. If `progress` is None, there is no callback.
  explicit Call(nb::object progress = nb::none()) : callback_(std::move(progress)) {}

  const std::atomic<bool>* stop() const { return &stop_; }
  /// Returns whether there is a progress callback.
  bool tells() const { return !callback_.is_none(); }
  /// Stores the latest progress, which the calling thread will report to the callback. May be called from any thread.
  void tell(std::int64_t first, std::int64_t second, double seconds);
  /// Returns a function for SolveOptions::progress that calls tell(); an empty function if there is no Python callback.
  std::function<void(const solvers::Progress&)> progress();

  /// Runs `question` on the calling thread, with the GIL, and throws what it throws. The work calls this function when
  /// it needs Python.
  void ask_python(const std::function<void()>& question);

  /// Runs the work and throws what it throws. An exception raised by a callback or signal handler is kept for
  /// raise_pending().
  void run(const std::function<void()>& work);

  /// Returns whether the work was told to stop.
  bool stopped() const { return stop_.load(); }
  /// Returns whether Ctrl-C stopped the work.
  bool interrupted() const { return interrupted_; }
  /// Raises the exception that a callback or a signal handler raised, unless it is KeyboardInterrupt.
  void raise_pending();

 private:
  /// Reports progress and handles signals. Needs the GIL.
  void look_around();
  /// Runs the question that waits for an answer; there must be one. Needs the GIL.
  void answer();
  /// Keeps the exception of a callback or signal handler for raise_pending(), and stops the work.
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
  std::optional<Told> latest_;                       ///< latest progress that was not reported yet
  const std::function<void()>* question_ = nullptr;  ///< question that was not answered yet
  std::exception_ptr refusal_;                       ///< exception that the last question threw
  bool done_ = false;
};

}  // namespace cairn::python
