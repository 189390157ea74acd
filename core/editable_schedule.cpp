#include "cairn/core/support/editable_schedule.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace cairn::core {

EditableSchedule::EditableSchedule(const Graph& graph)
    : inputs_(graph.view().inputs, graph.view().inputs + graph.edge_count()),
      end_(static_cast<Occurrence>(graph.node_count())) {
  const GraphView& view = graph.view();
  for (NodeId v = 0; v < end_; ++v) {
    nodes_.push_back({graph.size(v) + graph.scratch(v), graph.scratch(v), graph.size(v), view.input_begin[v],
                      view.value_begin[v], graph.required(v)});
  }
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    values_.push_back({graph.value_size(x), graph.producer(x), graph.value_kept(x)});
  }
  finish_setup();
}

EditableSchedule::EditableSchedule(std::span<const MemoryEffect> effects, std::vector<std::int32_t> input_begin,
                                   std::vector<NodeId> inputs)
    : inputs_(std::move(inputs)), end_(static_cast<Occurrence>(effects.size())) {
  for (NodeId v = 0; v < end_; ++v) {
    const MemoryEffect& effect = effects[v];
    nodes_.push_back({effect.rise, effect.drop, effect.output, input_begin[v], v, true});
    values_.push_back({effect.output, v, effect.keep});
  }
  for (const NodeId u : inputs_) nodes_[u].required = values_[u].keep;
  finish_setup();
}

/// Completes the tables of nodes and values, and creates an empty schedule. Also creates the entries of steps_ that
/// always exist. These are one occurrence of each node, which is not in the schedule yet, and the occurrence end_,
/// which stands for the end of the schedule.
void EditableSchedule::finish_setup() {
  const auto values = static_cast<std::int32_t>(values_.size());
  for (int i = 0; i < 2; ++i) nodes_.push_back({0, 0, 0, static_cast<std::int32_t>(inputs_.size()), values + i, true});
  values_.push_back({0, end_, false});
  std::int32_t most_inputs = 0;
  for (NodeId v = 0; v <= end_; ++v) {
    most_inputs = std::max(most_inputs, in_degree(v));
    steps_.push_back({.node = v, .reads = nodes_[v].input_begin, .slot = nodes_[v].value_begin});
  }
  slots_.resize(values_.size());
  reads_.resize(inputs_.size());
  releases_.reserve(static_cast<std::size_t>(most_inputs) + 1);
  assign({});
}

void EditableSchedule::assign(std::span<const NodeId> steps) {
  latest_.assign(static_cast<std::size_t>(end_), kNone);
  free_.assign(static_cast<std::size_t>(end_), kNone);
  for (auto o = static_cast<Occurrence>(steps_.size()) - 1; o >= 0; --o) {
    steps_[o] = {.node = steps_[o].node, .reads = steps_[o].reads, .slot = steps_[o].slot};
    if (o != end_) steps_[o].next = std::exchange(free_[steps_[o].node], o);
  }
  std::fill(slots_.begin(), slots_.end(), Slot());
  length_ = static_cast<std::int32_t>(steps.size());
  at_.clear();
  for (const NodeId v : steps) {
    const Occurrence o = add_occurrence(v);
    steps_[o].place = static_cast<Place>(at_.size());
    at_.push_back(o);
    for (std::int32_t k = 0; k < in_degree(v); ++k) {
      const ValueId x = inputs_[nodes_[v].input_begin + k];
      Read& read = reads_[steps_[o].reads + k];
      read = read_of(x, latest_[values_[x].producer], o);
      link_read(steps_[o].reads + k, slot_of(read).last_read);
    }
    steps_[o].previous = std::exchange(latest_[v], o);
    if (steps_[o].previous != kNone) steps_[steps_[o].previous].next = o;
  }
  at_.push_back(end_);
  steps_[end_].place = length_;

  // moved_ serves as work space here: entry i is the number of bytes that are freed after step i.
  moved_.assign(static_cast<std::size_t>(length_) + 2, 0);
  for (Place i = 0; i < length_; ++i) {
    const Node& node = nodes_[steps_[at_[i]].node];
    for (std::int32_t k = 0; k < output_count(steps_[at_[i]].node); ++k) {
      moved_[last_use(at_[i], k)] += values_[node.value_begin + k].bytes;
    }
  }
  memory_.resize(static_cast<std::size_t>(length_) + 1);
  std::int64_t bytes = 0;
  for (Place i = 0; i <= length_; ++i) {
    const Node& node = nodes_[steps_[at_[i]].node];
    memory_[i] = bytes + node.rise;
    bytes = memory_[i] - node.drop - moved_[i];
  }
  lifted_.assign(block(length_) + 1, 0);
  lay_out(length_ + 1);
}

std::vector<NodeId> EditableSchedule::steps() const {
  std::vector<NodeId> nodes;
  nodes.reserve(static_cast<std::size_t>(length_));
  for (Occurrence o = first(); o != end_; o = next(o)) nodes.push_back(node(o));
  return nodes;
}

EditableSchedule::Place EditableSchedule::occupied_from(Place place) const {
  std::size_t w = static_cast<std::size_t>(place) / 64;
  std::uint64_t word = occupied_[w] >> (place & 63) << (place & 63);
  while (word == 0) word = occupied_[++w];
  return static_cast<Place>(w * 64) + std::countr_zero(word);
}

EditableSchedule::Occurrence EditableSchedule::previous(Occurrence o) const {
  const Place p = place(o);
  std::size_t w = static_cast<std::size_t>(p) / 64;
  std::uint64_t word = occupied_[w] & ((std::uint64_t{1} << (p & 63)) - 1);
  while (word == 0) {
    if (w == 0) return kNone;
    word = occupied_[--w];
  }
  return at_[static_cast<Place>(w * 64) + 63 - std::countl_zero(word)];
}

EditableSchedule::Occurrence EditableSchedule::first_reader(Occurrence o, Place from) const {
  Occurrence first = kNone;
  for (std::int32_t k = 0; k < output_count(node(o)); ++k) {
    std::int32_t read = slots_[steps_[o].slot + k].first_read;
    while (read != kNone && place(reads_[read].reader) < from) read = reads_[read].next;
    if (read != kNone && (first == kNone || place(reader(read)) < place(first))) first = reader(read);
  }
  return first;
}

std::vector<EditableSchedule::Occurrence> EditableSchedule::readers(Occurrence o) const {
  std::vector<Occurrence> all;
  const std::int32_t outputs = output_count(node(o));
  for (std::int32_t k = 0; k < outputs; ++k) {
    for (std::int32_t read = slots_[steps_[o].slot + k].first_read; read != kNone; read = reads_[read].next) {
      all.push_back(reader(read));
    }
  }
  if (outputs > 1) {
    std::sort(all.begin(), all.end(), [&](Occurrence a, Occurrence b) { return place(a) < place(b); });
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  return all;
}

/// Inserts the read with index `read` into the list of all reads of its source, which is one output of one occurrence.
/// The read comes after the read `previous`, or at the head of the list if `previous` is kNone.
void EditableSchedule::link_read(std::int32_t read, std::int32_t previous) {
  Slot& source = slot_of(reads_[read]);
  const std::int32_t next = previous == kNone ? source.first_read : reads_[previous].next;
  reads_[read].previous = previous;
  reads_[read].next = next;
  (previous == kNone ? source.first_read : reads_[previous].next) = read;
  (next == kNone ? source.last_read : reads_[next].previous) = read;
}

void EditableSchedule::unlink_read(std::int32_t read) {
  const std::int32_t previous = reads_[read].previous, next = reads_[read].next;
  Slot& source = slot_of(reads_[read]);
  (previous == kNone ? source.first_read : reads_[previous].next) = next;
  (next == kNone ? source.last_read : reads_[next].previous) = previous;
}

void EditableSchedule::set_occupied(Place place, bool occupied) {
  const std::uint64_t bit = std::uint64_t{1} << (place & 63);
  std::uint64_t& word = occupied_[static_cast<std::size_t>(place) / 64];
  word = occupied ? word | bit : word & ~bit;
  stale_[block(place)] |= kSumStale;
  touch(block(place));
}

/// Gives new places, i.e. positions in [0, places), to all steps and to the end of the schedule. The new places are
/// spread evenly, so that empty places lie between them.
void EditableSchedule::lay_out(std::int32_t places) {
  list_.clear();
  moved_.clear();
  for (Place i = 0;; ++i) {
    if (at_[i] == kNone) continue;
    list_.push_back(at_[i]);
    moved_.push_back(during(i));
    if (at_[i] == end_) break;
  }
  block_bits_ = std::max(6, static_cast<int>(std::bit_width(static_cast<std::uint32_t>(places))) / 2);
  const std::size_t blocks = block(places - 1) + 1, rounded = blocks << block_bits_;
  at_.assign(rounded, kNone);
  memory_.assign(rounded, 0);
  occupied_.assign(rounded / 64, 0);
  lifted_.assign(blocks, 0);
  top_.resize(blocks);
  stale_.assign(blocks, kStale);
  sums_.resize(blocks);
  excess_ = 0;
  block_excess_.assign(blocks, 0);
  touched_.assign(blocks / 64 + 1, 0);
  touch(0, blocks - 1);
  Place next = 0;
  for (std::size_t k = 0; k < list_.size(); ++k) {
    const auto place =
        static_cast<Place>(static_cast<std::int64_t>(k + 1) * places / static_cast<std::int64_t>(list_.size())) - 1;
    const std::int64_t before = moved_[k] - nodes_[node(list_[k])].rise;
    while (next < place) memory_[next++] = before;
    memory_[next++] = moved_[k];
    at_[place] = list_[k];
    steps_[list_[k]].place = place;
    set_occupied(place, true);
  }
  moved_.resize(rounded);
}

/// Returns an empty place directly before `before`, and sets the bytes of memory at this place. To get the place,
/// shifts the steps between `before` and the nearest empty place by one place each. If the nearest empty place is
/// farther away than one block (2^block_bits_ places), gives new places to all steps, with empty places between them.
/// After that, an empty place is at most one block away for at least the next sqrt(T) / 2 calls, where T is the number
/// of steps.
EditableSchedule::Place EditableSchedule::make_room(Occurrence before) {
  const Place far = 1 << block_bits_;
  Place p = place(before);
  if (p > 0 && at_[p - 1] == kNone) return p - 1;
  Place low = p - 1, high = p + 1;  // low: next candidate to the left; high: next candidate to the right
  const Place least = std::max(0, p - far), most = std::min(place(end_) - 1, p + far);
  while (low >= least && at_[low] != kNone && (high > most || at_[high] != kNone)) {
    --low;
    ++high;
  }
  const auto shift = [&](Place from, Place to) {
    at_[to] = at_[from];
    steps_[at_[to]].place = to;
    memory_[to] = during(from) - lifted_[block(to)];
    stale_[block(to)] = kStale;
    touch(block(to));
  };
  if (low >= least && at_[low] == kNone) {
    set_occupied(low, true);
    for (Place i = low + 1; i < p; ++i) shift(i, i - 1);
    --p;
  } else {
    while (high <= most && at_[high] != kNone) ++high;
    if (high > most) {
      lay_out(std::max(place(end_) + 1, 3 * (length_ + 1)));
      return place(before) - 1;
    }
    set_occupied(high, true);
    for (Place i = high; i > p; --i) shift(i - 1, i);
  }
  at_[p] = kNone;
  set_occupied(p, false);
  memory_[p] = this->before(before) - lifted_[block(p)];
  stale_[block(p)] = kStale;
  return p;
}

EditableSchedule::Occurrence EditableSchedule::add_occurrence(NodeId v) {
  Occurrence o = free_[v];
  if (o != kNone) {
    free_[v] = steps_[o].next;
    steps_[o].next = kNone;
    return o;
  }
  o = static_cast<Occurrence>(steps_.size());
  steps_.push_back(
      {.node = v, .reads = static_cast<std::int32_t>(reads_.size()), .slot = static_cast<std::int32_t>(slots_.size())});
  reads_.resize(reads_.size() + static_cast<std::size_t>(in_degree(v)));
  slots_.resize(slots_.size() + static_cast<std::size_t>(output_count(v)));
  return o;
}

/// Considers all reads of the output that `read` reads, and returns the last of them before place p, or kNone if there
/// is none. `read` is the k-th input of `step`. The search starts from the nearest of four known reads: both ends of
/// the list of reads, and the reads by the previous and the next occurrence of the step's node.
std::int32_t EditableSchedule::read_before(const Read& read, Place p, const Step& step, std::int32_t k) const {
  const Slot& slot = slots_[steps_[read.source].slot + read.output];
  if (slot.last_read == kNone) return kNone;
  const auto place_of = [&](std::int32_t other) { return place(reads_[other].reader); };
  std::int32_t behind = slot.first_read, ahead = slot.last_read;
  Place from_behind = p - place_of(behind), from_ahead = place_of(ahead) - p;
  if (from_ahead < 0) return ahead;
  if (from_behind < 0) return kNone;
  const auto nearer = [&](Occurrence other, std::int32_t& known, Place& least) {
    if (other == kNone || reads_[steps_[other].reads + k].source != read.source) return;
    const Place distance = std::abs(p - place(other));
    if (distance >= least) return;
    known = steps_[other].reads + k;
    least = distance;
  };
  nearer(step.previous, behind, from_behind);
  nearer(step.next, ahead, from_ahead);
  if (from_behind < from_ahead) {
    while (place_of(reads_[behind].next) < p) behind = reads_[behind].next;
    return behind;
  }
  do ahead = reads_[ahead].previous;
  while (place_of(ahead) > p);
  return ahead;
}

EditableSchedule::Occurrence EditableSchedule::insert(NodeId v, Occurrence before) {
  const Place p = make_room(before);
  const Occurrence o = add_occurrence(v);
  const Node& node = nodes_[v];
  Step& step = steps_[o];
  step.place = p;
  at_[p] = o;
  set_occupied(p, true);
  ++length_;
  add_memory(p, p, node.rise);

  const Occurrence previous = latest_before(v, p);
  step.previous = previous;
  if (previous == kNone) {
    step.next = latest_[v];
    while (step.next != kNone && steps_[step.next].previous != kNone) step.next = steps_[step.next].previous;
  } else {
    step.next = steps_[previous].next;
  }

  for (std::int32_t k = 0; k < in_degree(v); ++k) {
    const ValueId x = inputs_[node.input_begin + k];
    Read& read = reads_[step.reads + k];
    read = read_of(x, latest_before(values_[x].producer, p), o);
    const Place old = last_use(read.source, read.output);
    link_read(step.reads + k, read_before(read, p, step, k));
    change_life(read.source, read.output, old);
  }

  // Readers of the previous occurrence that are after p read the new occurrence from now on.
  note_last_uses(previous);
  if (previous != kNone) steps_[previous].next = o;
  (step.next == kNone ? latest_[v] : steps_[step.next].previous) = o;
  if (previous != kNone) {
    for (std::int32_t k = 0; k < output_count(v); ++k) {
      Slot &from = slots_[steps_[previous].slot + k], &to = slots_[step.slot + k];
      std::int32_t kept = from.last_read;
      while (kept != kNone && place(reader(kept)) > p) {
        reads_[kept].source = o;
        kept = reads_[kept].previous;
      }
      std::int32_t& first_moved = kept == kNone ? from.first_read : reads_[kept].next;
      if (first_moved == kNone) continue;
      to.first_read = std::exchange(first_moved, kNone);
      to.last_read = std::exchange(from.last_read, kept);
      reads_[to.first_read].previous = kNone;
    }
    change_lives(previous);
  }
  add_memory(p + 1, place(end_), node.rise - node.drop - node.output);
  for (std::int32_t k = 0; k < output_count(v); ++k) {
    add_memory(p + 1, last_use(o, k), values_[node.value_begin + k].bytes);
  }
  return o;
}

void EditableSchedule::drop(Occurrence o) {
  Step& step = steps_[o];
  const Place p = step.place;
  const Node& node = nodes_[step.node];
  add_memory(p, p, -node.rise);
  add_memory(p + 1, place(end_), node.drop + node.output - node.rise);
  for (std::int32_t k = 0; k < output_count(step.node); ++k) {
    add_memory(p + 1, last_use(o, k), -values_[node.value_begin + k].bytes);
  }

  for (std::int32_t read = step.reads; read < step.reads + in_degree(step.node); ++read) {
    const Occurrence source = reads_[read].source;
    const std::int32_t output = reads_[read].output;
    const Place old = last_use(source, output);
    unlink_read(read);
    change_life(source, output, old);
  }

  const Occurrence previous = step.previous, next = step.next;
  note_last_uses(previous);
  (next == kNone ? latest_[step.node] : steps_[next].previous) = previous;
  if (previous != kNone) {
    steps_[previous].next = next;
    for (std::int32_t k = 0; k < output_count(step.node); ++k) {
      Slot &from = slots_[step.slot + k], &to = slots_[steps_[previous].slot + k];
      if (from.first_read == kNone) continue;
      for (std::int32_t read = from.first_read; read != kNone; read = reads_[read].next) reads_[read].source = previous;
      reads_[from.first_read].previous = to.last_read;
      (to.last_read == kNone ? to.first_read : reads_[to.last_read].next) = from.first_read;
      to.last_read = from.last_read;
    }
    change_lives(previous);
  }
  for (std::int32_t k = 0; k < output_count(step.node); ++k) slots_[step.slot + k] = {};
  at_[p] = kNone;
  set_occupied(p, false);
  --length_;
  step = {.node = step.node, .reads = step.reads, .slot = step.slot, .next = std::exchange(free_[step.node], o)};
}

void EditableSchedule::drop_with_unneeded(Occurrence o) {
  list_.assign(1, o);
  while (!list_.empty()) {
    const Occurrence dropped = list_.back();
    list_.pop_back();
    if (place(dropped) < 0) continue;  // already dropped: it was listed twice, because one step read two of its outputs
    drop(dropped);
    const std::int32_t reads = steps_[dropped].reads;
    for (std::int32_t k = 0; k < in_degree(steps_[dropped].node); ++k) {
      if (!needed(reads_[reads + k].source)) list_.push_back(reads_[reads + k].source);
    }
  }
}

EditableSchedule::Range EditableSchedule::legal(Occurrence o) const {
  const Step& step = steps_[o];
  Range range{0, place(end_) - 1};
  for (std::int32_t read = step.reads; read < step.reads + in_degree(step.node); ++read) {
    const Step& source = steps_[reads_[read].source];
    range.first = std::max(range.first, source.place + 1);
    if (source.next != kNone) range.last = std::min(range.last, place(source.next) - 1);
  }
  if (const Occurrence reader = first_reader(o); reader != kNone) range.last = std::min(range.last, place(reader) - 1);
  if (step.next != kNone) range.last = std::min(range.last, place(step.next) - 1);
  if (step.previous != kNone) range.first = std::max(range.first, last_use(step.previous) + 1);
  return range;
}

void EditableSchedule::evaluate_move(Occurrence o, Place to) {
  moving_ = o;
  moving_to_ = to;
  const Step& step = steps_[o];
  const Node& node = nodes_[step.node];
  const Place from = step.place;
  // For some inputs of o, the move changes the step that frees them: from o to another step, or from another step to o.
  // For each such input, a Release holds the place of the other step, which is between the old and the new place of o.
  releases_.clear();
  // Counts the bytes that o frees at its old place and would still free at an earlier place.
  std::int64_t released = 0;
  for (std::int32_t k = 0; k < output_count(step.node); ++k) {
    if (last_use(o, k) == from) released += values_[node.value_begin + k].bytes;
  }
  for (std::int32_t k = 0; k < in_degree(step.node); ++k) {
    const std::int64_t bytes = values_[inputs_[node.input_begin + k]].bytes;
    if (bytes == 0) continue;
    const Read& read = reads_[step.reads + k];
    const Place last = last_use(read.source, read.output);
    if (to > from) {
      if (last > from && last <= to) releases_.push_back({last, bytes});
    } else if (last == from) {
      const std::int32_t other = read.previous;
      if (other != kNone && place(reader(other)) >= to) {
        releases_.push_back({place(reader(other)), bytes});
      } else {
        released += bytes;
      }
    }
  }
  if (releases_.size() > 1) {
    std::sort(releases_.begin(), releases_.end(), [](const Release& a, const Release& b) { return a.place < b.place; });
  }
  releases_.push_back({place(end_) + 1, 0});
  const Release* release = releases_.data();
  if (to > from) {
    Place i = from, next = next_occupied(i);
    std::int64_t shift = before_place(from) - before_place(next);
    while (i < to) {
      moved_[i] = during(next) + shift;
      for (; release->place == next; ++release) shift += release->bytes;
      i = next;
      next = next_occupied(i);
    }
    moved_[to] = before_place(next) + shift + node.rise;
  } else {
    moved_[to] = before_place(to) + node.rise;
    std::int64_t shift = node.rise - node.drop - released;
    for (Place i = to; i < from;) {
      const Place next = next_occupied(i);
      moved_[next] = during(i) + shift;
      for (; release->place == i; ++release) shift -= release->bytes;
      i = next;
    }
  }
}

void EditableSchedule::move() {
  const Occurrence o = moving_;
  Step& step = steps_[o];
  const Place from = step.place, to = moving_to_;
  const auto put = [&](Occurrence moved, Place place) {
    at_[place] = moved;
    steps_[moved].place = place;
    memory_[place] = moved_[place] - lifted_[block(place)];
    stale_[block(place)] = kStale;
    touch(block(place));
  };
  if (to > from) {
    for (Place i = from; i < to;) {
      const Place next = next_occupied(i);
      put(at_[next], i);
      i = next;
    }
    put(o, to);
  } else {
    Occurrence moved = o;
    for (Place i = to; i <= from; i = next_occupied(i)) {
      const Occurrence next = at_[i];
      put(moved, i);
      moved = next;
    }
  }
  if (length_ < place(end_)) {
    for (Place i = std::max(from, to), next = next_occupied(i); i >= std::min(from, to); --i) {
      if (at_[i] != kNone) {
        next = i;
      } else {
        memory_[i] = before_place(next) - lifted_[block(i)];
      }
    }
  }
  for (std::int32_t read = step.reads; read < step.reads + in_degree(step.node); ++read) {
    std::int32_t behind = read;
    if (to > from) {
      while (reads_[behind].next != kNone && place(reader(reads_[behind].next)) < to) behind = reads_[behind].next;
      if (behind == read) continue;
    } else {
      behind = reads_[read].previous;
      if (behind == kNone || place(reader(behind)) < to) continue;
      while (behind != kNone && place(reader(behind)) > to) behind = reads_[behind].previous;
    }
    unlink_read(read);
    link_read(read, behind);
  }
}

}  // namespace cairn::core
