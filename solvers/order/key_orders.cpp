#include "solvers/order/internal/key_orders.h"

#include <algorithm>
#include <cstddef>

#include "core/dominance.h"

namespace cairn::solvers {

std::int32_t KeyTree::reader_count() const {
  return static_cast<std::int32_t>(
      std::count_if(keys.begin(), keys.end(), [](const Key& key) { return key.reads_source; }));
}

KeyOrders::KeyOrders(const KeyTree& tree, Stopwatch& watch) : tree_(tree), watch_(watch), unread_(tree.reader_count()) {
  position_.assign(tree.keys.size(), -1);
  for (const KeyTree::Key& key : tree.keys) waiting_.push_back(key.children);
}

core::Segment KeyOrders::key_segment(std::int32_t key, bool releases) const {
  core::Segment segment = tree_.keys[key].key;
  if (releases) segment.drop += tree_.released;
  return segment;
}

/// The caduceus graph of the keys placed so far, the rest relaxed.
void KeyOrders::build(bool keep_steps) {
  caduceus_.clear();
  const auto staff = static_cast<std::int32_t>(order_.size());
  if (keep_steps) steps_.clear();
  const auto note = [&](std::int32_t part, std::int32_t segment) {
    if (keep_steps) steps_.push_back({part, segment});
  };
  std::int32_t reader = -1;  // the last placed key that reads the source
  for (const std::int32_t key : order_) {
    if (tree_.keys[key].reads_source) reader = key;
  }
  for (const std::int32_t key : order_) {
    caduceus_.add_staff(key_segment(key, unread_ == 0 && key == reader));
    note(key, -1);
  }
  const auto gap_before = [&](std::int32_t parent) {
    return parent < 0 || position_[parent] < 0 ? staff : position_[parent];
  };
  const auto add_bend = [&](std::int32_t part, std::int32_t first, std::int32_t last, const Chain& chain) {
    if (chain.empty()) return;
    caduceus_.add_bend(first, last, chain);
    for (std::size_t i = 0; i < chain.size(); ++i) note(part, static_cast<std::int32_t>(i));
  };
  const auto keys = static_cast<std::int32_t>(tree_.keys.size());
  bool released = unread_ == 0;
  std::vector<core::Segment> relaxed;
  for (std::int32_t k = 0; k < keys; ++k) {
    const KeyTree::Key& key = tree_.keys[k];
    if (position_[k] >= 0) {
      add_bend(k, position_[k] + 1, gap_before(key.parent), *key.rest);
      continue;
    }
    const bool releases = !released && key.reads_source;
    released = released || releases;
    relaxed.clear();
    core::append_segment(relaxed, key_segment(k, releases));
    for (const Piece& piece : *key.rest) core::append_segment(relaxed, piece);
    caduceus_.add_bend(staff, staff, relaxed);
  }
  for (std::size_t f = 0; f < tree_.free.size(); ++f) {
    add_bend(keys + static_cast<std::int32_t>(f), 0, gap_before(tree_.free[f].parent), *tree_.free[f].chain);
  }
}

std::vector<core::Segment> KeyOrders::segments_of(const std::vector<SegmentCaduceus::Id>& order) const {
  std::vector<core::Segment> segments;
  for (const SegmentCaduceus::Id id : order) core::append_segment(segments, caduceus_.segment(id));
  return segments;
}

/// All keys are placed: is its dominant schedule the best?
void KeyOrders::offer() {
  build(true);
  const auto order = caduceus_.dominant_order();
  std::vector<core::Segment> segments = segments_of(order);
  if (!best_steps_.empty() && !core::dominates(core::CanonicalView(0, segments), core::CanonicalView(0, best_))) return;
  best_ = std::move(segments);
  best_peak_ = caduceus_.peak(order);
  best_steps_.clear();
  for (const SegmentCaduceus::Id id : order) best_steps_.push_back(steps_[id]);
}

void KeyOrders::descend() {
  if (order_.size() == tree_.keys.size()) {
    offer();
    return;
  }
  const auto place = [&](std::int32_t key) {
    position_[key] = static_cast<std::int32_t>(order_.size());
    order_.push_back(key);
    if (tree_.keys[key].parent >= 0) --waiting_[tree_.keys[key].parent];
    unread_ -= tree_.keys[key].reads_source ? 1 : 0;
  };
  const auto take_back = [&](std::int32_t key) {
    position_[key] = -1;
    order_.pop_back();
    if (tree_.keys[key].parent >= 0) ++waiting_[tree_.keys[key].parent];
    unread_ += tree_.keys[key].reads_source ? 1 : 0;
  };
  std::vector<Child> children;
  for (std::int32_t key = 0; key < static_cast<std::int32_t>(tree_.keys.size()); ++key) {
    if (position_[key] >= 0 || waiting_[key] > 0) continue;
    if (watch_.expired(static_cast<std::int64_t>(tree_.keys.size()))) {
      // Without time the first way down is any way down.
      complete_ = false;
      if (best_steps_.empty() && children.empty()) children.push_back({0, key});
      break;
    }
    place(key);
    build(false);
    const std::int64_t peak = caduceus_.peak(caduceus_.optimal_order());
    take_back(key);
    if (peak <= best_peak_) children.push_back({peak, key});
  }
  std::stable_sort(children.begin(), children.end(), [](const Child& a, const Child& b) { return a.peak < b.peak; });
  for (const Child& child : children) {
    if (child.peak > best_peak_) break;
    if (!best_steps_.empty() && watch_.expired(static_cast<std::int64_t>(tree_.keys.size()) * 16)) complete_ = false;
    if (!best_steps_.empty() && !complete_) return;
    place(child.key);
    bool hopeless = false;
    if (!best_steps_.empty() && order_.size() < tree_.keys.size()) {
      // Whatever this prefix leads to is dominated by its relaxation, and so by the best if that dominates it.
      build(false);
      const std::vector<core::Segment> segments = segments_of(caduceus_.dominant_order());
      hopeless = core::dominates(core::CanonicalView(0, best_), core::CanonicalView(0, segments));
    }
    if (!hopeless) descend();
    take_back(child.key);
  }
}

bool KeyOrders::search() {
  descend();
  return complete_;
}

}  // namespace cairn::solvers
