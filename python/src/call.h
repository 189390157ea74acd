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

/// Runs a long call in a thread of its own, while the calling thread waits without the GIL. Several times a second the
/// calling thread handles signals and reports progress. So a search never waits for Python, and callbacks and signal
/// handlers run on the thread where Python expects them. Runs one piece of work at a time.
class Call {
 public:
  /// `progress` is called with the latest progress, as progress(peak, cost, seconds) for a search. It stops the work by
  /// returning False or raising. None: no callback.
  explicit Call(nb::object progress = nb::none()) : callback_(std::move(progress)) {}

  const std::atomic<bool>* stop() const { return &stop_; }
  /// Whether there is a callback.
  bool tells() const { return !callback_.is_none(); }
  /// Reports progress; may be called from any thread.
  void tell(std::int64_t first, std::int64_t second, double seconds);
  /// A callback for SolveOptions::progress; empty where nobody listens.
  std::function<void(const solvers::Progress&)> progress();

  /// Called by the work: runs `question` on the calling thread, with the GIL, and throws what it throws.
  void ask_python(const std::function<void()>& question);

  /// Runs the work and throws what it throws. What a callback or a signal handler raised is kept for raise_pending().
  void run(const std::function<void()>& work);

  /// Whether the work was told to stop.
  bool stopped() const { return stop_.load(); }
  /// Whether Ctrl-C stopped it.
  bool interrupted() const { return interrupted_; }
  /// Raises what a callback or a signal handler raised, except KeyboardInterrupt.
  void raise_pending();

 private:
  /// Reports progress and handles signals. Needs the GIL.
  void look_around();
  void answer();
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
