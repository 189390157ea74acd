#include "cairn/tests/fake_cuda/runtime/fake_streams.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace cairn::tests::fake {
namespace {

/// Returns the order that the environment variable FAKE_CUDA_ORDER names: late, early or random.
Order order_of_environment() {
  const char* const text = std::getenv("FAKE_CUDA_ORDER");
  const std::string_view name = text == nullptr ? "" : text;
  return name == "early" ? Order::early : name == "random" ? Order::random : Order::late;
}

/// Returns, for each node, whether it is in `last` or must run before a node in `last`.
std::vector<bool> up_to(const std::vector<Node>& nodes, const std::vector<std::size_t>& last) {
  std::vector<bool> found(nodes.size());
  for (const std::size_t node : last) found[node] = true;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (!found[i]) continue;
    for (const std::size_t before : nodes[i].after)
      // A node waits only for nodes with lower indices. So a single pass from the last node to the first is enough.
      found[before] = true;
  }
  return found;
}

}  // namespace

Scheduling& scheduling() {
  static Scheduling instance{order_of_environment(), {}};
  return instance;
}

void set_order(Order order, std::uint64_t seed) {
  scheduling().order = order;
  scheduling().random.seed(seed);
}
Order order() { return scheduling().order; }

void Streams::push(cudaStream_t stream, Work work) {
  if (stream->capture) {
    std::vector<Node>& nodes = stream->capture->nodes;
    nodes.push_back({std::move(work), std::exchange(stream->last, {nodes.size()})});
    return;
  }
  if (work.event && work.records == 0) {
    ++work.event->enqueued;
    work.event->stream = stream;
    work.event->capture.reset();
  }
  stream->pending.push_back(std::move(work));
  go_on();
}

bool Streams::step(cudaStream_t stream) {
  if (stream->pending.empty() || !ready(stream->pending.front())) return false;
  const Work work = std::move(stream->pending.front());
  stream->pending.pop_front();
  if (work.records > 0) return true;
  const bool before = std::exchange(running_, true);
  execute_(work);
  running_ = before;
  return true;
}

void Streams::finish(cudaStream_t stream) {
  while (!stream->pending.empty()) {
    const Work& next = stream->pending.front();
    if (!ready(next)) finish(*next.event, next.records);
    step(stream);
  }
}

void Streams::finish(const EventState& event, std::int64_t records) {
  const cudaStream_t stream = event.stream;
  while (event.done < records && !failed_() && alive.count(stream) != 0 && !stream->pending.empty()) {
    const Work& next = stream->pending.front();
    if (!ready(next)) finish(*next.event, next.records);
    step(stream);
  }
}

void Streams::go_on() {
  const Order order = scheduling().order;
  if (order == Order::late || running_) return;
  if (order == Order::early) {
    for (bool moved = true; moved;) {
      moved = false;
      for (const cudaStream_t stream : alive) moved = step(stream) || moved;
    }
    return;
  }
  constexpr std::uint64_t kMost = 4;  // at each call of the host, fewer than this many pieces of work run
  std::mt19937_64& random = scheduling().random;
  for (std::uint64_t left = random() % kMost; left > 0 && !alive.empty(); --left)
    step(*std::next(alive.begin(), static_cast<std::ptrdiff_t>(random() % alive.size())));
}

bool Streams::capturing() const {
  return std::any_of(alive.begin(), alive.end(), [](cudaStream_t stream) { return stream->capture != nullptr; });
}

std::string Streams::wait(cudaStream_t stream, const std::shared_ptr<EventState>& event) {
  const std::shared_ptr<Capture> capture = event->capture.lock();
  if (capture == nullptr && stream->capture == nullptr) {
    // A wait for an event that was never recorded has no effect, as in CUDA.
    if (event->enqueued > event->done) push(stream, {.event = event, .records = event->enqueued});
    return {};
  }
  if (capture == nullptr) return "a captured stream waits for an event outside of its capture";
  if (stream->capture == nullptr) {
    if (!stream->pending.empty()) return "a stream with pending work joins a capture";
    stream->capture = capture;
    stream->last.clear();
  }
  if (stream->capture != capture) return "a captured stream waits for an event of another capture";
  for (const std::size_t node : event->after) {
    if (std::find(stream->last.begin(), stream->last.end(), node) == stream->last.end()) stream->last.push_back(node);
  }
  return {};
}

std::string Streams::end_capture(cudaStream_t stream, std::vector<Node>& nodes) {
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream) return "a capture ends in another stream than it began in";
  const std::vector<bool> joined = up_to(capture->nodes, stream->last);
  for (const cudaStream_t one : alive) {
    if (one->capture != capture) continue;
    one->capture.reset();
    one->last.clear();
  }
  nodes = capture->nodes;
  const bool all = std::find(joined.begin(), joined.end(), false) == joined.end();
  return all ? "" : "a capture ends before its streams were joined";
}

void Streams::launch(const std::vector<Node>& nodes, cudaStream_t stream) {
  std::vector<std::size_t> missing(nodes.size());
  std::vector<std::size_t> ready;  // indices of the nodes that may be enqueued now, in ascending order
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i].after.size();
    if (missing[i] == 0) ready.push_back(i);
  }
  std::vector<std::vector<std::size_t>> next(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::size_t before : nodes[i].after) next[before].push_back(i);
  }
  while (!ready.empty()) {
    const Order order = scheduling().order;
    const std::size_t at = order == Order::late    ? 0
                           : order == Order::early ? ready.size() - 1
                                                   : scheduling().random() % ready.size();
    const std::size_t chosen = ready[at];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
    push(stream, nodes[chosen].work);
    for (const std::size_t node : next[chosen]) {
      if (--missing[node] == 0) ready.insert(std::upper_bound(ready.begin(), ready.end(), node), node);
    }
  }
}

}  // namespace cairn::tests::fake
