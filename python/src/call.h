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

/// A long call: its work is done by a thread of its own, while the thread that called waits without the GIL and looks
/// several times a second for signals, and for progress to tell. So a search never waits for Python, and callbacks and
/// signal handlers run where Python expects them. For one piece of work at a time.
class Call {
 public:
  /// `progress` is called with the latest of what there is to tell, as progress(peak, cost, seconds) of a search; it
  /// stops the work by returning False or raising. None: nobody is told.
  explicit Call(nb::object progress = nb::none()) : callback_(std::move(progress)) {}

  const std::atomic<bool>* stop() const { return &stop_; }
  /// Whether somebody wants to be told.
  bool tells() const { return !callback_.is_none(); }
  /// From any thread.
  void tell(std::int64_t first, std::int64_t second, double seconds);
  /// For SolveOptions::progress.
  std::function<void(const solvers::Progress&)> progress();

  /// In the work: does that on the thread that called, with the GIL, and throws what it throws.
  void ask_python(const std::function<void()>& question);

  /// Does the work and throws what it throws. What a callback or a signal handler raised is kept for raise_pending().
  void run(const std::function<void()>& work);

  /// Whether the work was told to stop.
  bool stopped() const { return stop_.load(); }
  /// Whether it was by Ctrl-C.
  bool interrupted() const { return interrupted_; }
  /// Raises what a callback or a signal handler raised, but KeyboardInterrupt.
  void raise_pending();

 private:
  /// With the GIL.
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
  std::optional<Told> latest_;                       ///< not yet told
  const std::function<void()>* question_ = nullptr;  ///< not yet asked
  std::exception_ptr refusal_;                       ///< what the question threw
  bool done_ = false;
};

}  // namespace cairn::python
