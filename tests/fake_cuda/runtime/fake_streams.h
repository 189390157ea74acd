#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cairn/tests/fake_cuda/fake_cuda.h"

/// This file has the streams, events, captures and graphs of the fake CUDA runtime. It decides which work runs when.
namespace cairn::tests::fake {

struct Capture;

struct EventState {
  bool timed = true;
  std::int64_t enqueued = 0, done = 0;  ///< number of records that were enqueued, and number of records that have run
  std::int64_t time = 0;                ///< fake time of the latest record that has run
  cudaStream_t stream = nullptr;        ///< stream of the latest record
  std::weak_ptr<Capture> capture;       ///< capture that contains the latest record, if there is one
  std::vector<std::size_t> after;       ///< nodes of that capture which must run before the record
};

/// One piece of work in a stream: a function to run, an event to record, or an event to wait for.
struct Work {
  std::function<void()> run;
  bool kernel = false;
  std::shared_ptr<EventState> event;
  std::int64_t records = 0;  ///< if not 0, the work waits until the event was recorded this many times
};

/// A piece of captured work, and the indices of the nodes after which it must run.
struct Node {
  Work work;
  std::vector<std::size_t> after;
};

/// A capture, which begins in one stream. Another stream joins the capture by waiting for an event of it.
struct Capture {
  cudaStream_t origin = nullptr;
  std::vector<Node> nodes;
};

}  // namespace cairn::tests::fake

// CUDA's handles, such as cudaStream_t, are pointers to the following structs.
struct CUstream_st {
  int device = 0;
  std::deque<cairn::tests::fake::Work> pending;
  std::shared_ptr<cairn::tests::fake::Capture> capture;
  std::vector<std::size_t> last;  ///< nodes of the capture after which the stream's next work must run
};
struct CUevent_st {
  std::shared_ptr<cairn::tests::fake::EventState> state;
  int device = 0;
};
struct CUgraph_st {
  std::vector<cairn::tests::fake::Node> nodes;
};
struct CUgraphExec_st {
  std::vector<cairn::tests::fake::Node> nodes;
  int device = 0;
};

namespace cairn::tests::fake {

/// The order in which work runs, and the random numbers for Order::random. reset() does not change either.
struct Scheduling {
  Order order = Order::late;
  std::mt19937_64 random;
};
Scheduling& scheduling();

class Streams {
 public:
  /// `execute` runs a piece of work that is not a wait. `failed` returns whether the device has failed. After a
  /// failure, no work runs, and all waits end at once.
  Streams(std::function<void(const Work&)> execute, std::function<bool()> failed)
      : execute_(std::move(execute)), failed_(std::move(failed)) {}

  std::set<cudaStream_t> alive;

  /// Appends work to the stream or, if the stream takes part in a capture, to the capture.
  void push(cudaStream_t stream, Work work);
  /// Runs all work of a stream, and all work of other streams for which the stream waits.
  void finish(cudaStream_t stream);
  /// Runs pending work until the event has been recorded `records` times.
  void finish(const EventState& event, std::int64_t records);
  /// Runs the work that may run now according to the Order. The host calls this function at every call of the runtime.
  void go_on();
  /// Runs the next piece of work of a stream. Returns false if the stream has none, or if it must wait for an event
  /// first.
  bool step(cudaStream_t stream);

  bool capturing() const;
  /// Makes a stream wait for the latest record of the event. If this is forbidden, returns the reason, else an empty
  /// text.
  std::string wait(cudaStream_t stream, const std::shared_ptr<EventState>& event);
  /// Ends the capture of a stream and sets `nodes` to the captured work. If the capture is invalid, returns the reason,
  /// else an empty text.
  std::string end_capture(cudaStream_t stream, std::vector<Node>& nodes);
  /// Appends captured work to the stream, in one of the orders that the graph of its dependencies allows.
  void launch(const std::vector<Node>& nodes, cudaStream_t stream);

 private:
  bool ready(const Work& work) const { return work.records == 0 || failed_() || work.event->done >= work.records; }

  std::function<void(const Work&)> execute_;
  std::function<bool()> failed_;
  bool running_ = false;  ///< whether work is running; the work may itself call the runtime
};

}  // namespace cairn::tests::fake
