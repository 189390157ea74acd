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

/// Streams, events, captures and graphs of the fake CUDA runtime. This code decides which work runs when.
namespace cairn::tests::fake {

struct Capture;

struct EventState {
  bool timed = true;
  std::int64_t enqueued = 0, done = 0;  ///< number of records that were enqueued, and that have run
  std::int64_t time = 0;                ///< time of the latest record that ran
  cudaStream_t stream = nullptr;        ///< stream of the latest record
  std::weak_ptr<Capture> capture;       ///< capture in which the event was recorded last, if it was in one
  std::vector<std::size_t> after;       ///< nodes of that capture which precede the record
};

/// One piece of work of a stream: something to run, an event to record, or an event to wait for.
struct Work {
  std::function<void()> run;
  bool kernel = false;
  std::shared_ptr<EventState> event;
  std::int64_t records = 0;  ///< if not 0, the work waits for so many records of the event
};

/// A piece of captured work, and the indices of those that it must follow.
struct Node {
  Work work;
  std::vector<std::size_t> after;
};

/// A capture, which begins in one stream. Streams that wait for an event of the capture join it.
struct Capture {
  cudaStream_t origin = nullptr;
  std::vector<Node> nodes;
};

}  // namespace cairn::tests::fake

// CUDA's handles (such as cudaStream_t) are pointers to these structs.
struct CUstream_st {
  int device = 0;
  std::deque<cairn::tests::fake::Work> pending;
  std::shared_ptr<cairn::tests::fake::Capture> capture;
  std::vector<std::size_t> last;  ///< nodes of the capture that the stream's next work must follow
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

/// The order in which work runs, and its source of random numbers. Both outlive reset().
struct Scheduling {
  Order order = Order::late;
  std::mt19937_64 random;
};
Scheduling& scheduling();

class Streams {
 public:
  /// `execute` runs a piece of work that is not a wait. `failed` returns whether the device has failed. After a
  /// failure, no work runs, and all waits end.
  Streams(std::function<void(const Work&)> execute, std::function<bool()> failed)
      : execute_(std::move(execute)), failed_(std::move(failed)) {}

  std::set<cudaStream_t> alive;

  /// Appends work to the stream, or to the capture in which the stream takes part.
  void push(cudaStream_t stream, Work work);
  /// Runs all work of a stream, and the work of others for which it waits.
  void finish(cudaStream_t stream);
  /// Runs work until the event has been recorded `records` times.
  void finish(const EventState& event, std::int64_t records);
  /// Runs the work that may run now according to the Order. Called whenever the host calls the runtime.
  void go_on();
  /// Runs the next piece of work of a stream. Returns false if there is none, or if it waits for an event.
  bool step(cudaStream_t stream);

  bool capturing() const;
  /// Makes a stream wait for the latest record of the event. Returns why this is forbidden, or an empty text.
  std::string wait(cudaStream_t stream, const std::shared_ptr<EventState>& event);
  /// Ends the capture of a stream and sets `nodes` to the captured work. Returns why the capture is invalid, or an
  /// empty text.
  std::string end_capture(cudaStream_t stream, std::vector<Node>& nodes);
  /// Appends captured work in one of the orders that the graph allows.
  void launch(const std::vector<Node>& nodes, cudaStream_t stream);

 private:
  bool ready(const Work& work) const { return work.records == 0 || failed_() || work.event->done >= work.records; }

  std::function<void(const Work&)> execute_;
  std::function<bool()> failed_;
  bool running_ = false;  ///< whether work is running, which can itself call the runtime
};

}  // namespace cairn::tests::fake
