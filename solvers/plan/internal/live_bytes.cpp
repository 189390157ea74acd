#include "cairn/solvers/plan/internal/live_bytes.h"

#include <algorithm>

namespace cairn::solvers::plan {

LiveBytes::LiveBytes(const std::vector<std::int64_t>& times) {
  for (std::size_t i = kSectionTimes; i < times.size(); i += kSectionTimes) {
    if (starts_.empty() || starts_.back() < times[i]) starts_.push_back(times[i]);
  }
  while (width_ < starts_.size() + 1) width_ *= 2;
  nodes_.resize(2 * width_);
  changes_.resize(starts_.size() + 1);
}

std::size_t LiveBytes::section_of(std::int64_t time) const {
  return static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), time) - starts_.begin());
}

void LiveBytes::apply(std::span<const Rectangle> block, std::int64_t sign) {
  for_each_change(block, [&](std::int64_t time, std::int64_t bytes) { change(time, bytes, sign); });
}

/// Notes a change, or, with a negative sign, takes out one that was noted.
void LiveBytes::change(std::int64_t time, std::int64_t bytes, std::int64_t sign) {
  if (bytes == 0) return;
  const std::size_t section = section_of(time);
  std::vector<Change>& changes = changes_[section];
  const auto at = std::lower_bound(changes.begin(), changes.end(), Change{time, bytes});
  if (sign > 0) {
    changes.insert(at, {time, bytes});
  } else {
    changes.erase(at);
  }
  Node node;
  for (const Change& c : changes) {
    node.sum += c.bytes;
    node.most = std::max(node.most, node.sum);
  }
  std::size_t n = width_ + section;
  nodes_[n] = node;
  while (n /= 2) {
    const Node &a = nodes_[2 * n], &b = nodes_[2 * n + 1];
    nodes_[n] = {a.sum + b.sum, std::max(a.most, a.sum + b.most)};
  }
}

std::int64_t LiveBytes::most(std::int64_t first, std::int64_t last) const {
  const std::size_t from = section_of(first), to = section_of(last);
  std::int64_t live = 0, most = 0;
  for (std::size_t n = width_ + from; n > 1; n /= 2) {
    if (n % 2 == 1) live += nodes_[n - 1].sum;
  }
  // Of the changes up to `first` only what they leave counts.
  const auto scan = [&](std::size_t section) {
    for (const Change& c : changes_[section]) {
      if (c.time > last) break;
      if (c.time > first) most = std::max(most, live);
      live += c.bytes;
    }
    most = std::max(most, live);
  };
  scan(from);
  if (from == to) return most;
  most_in(1, 0, width_, from + 1, to, live, most);
  scan(to);
  return most;
}

/// Runs through the sections from `from` to before `to` in the node's [begin, end).
void LiveBytes::most_in(std::size_t n, std::size_t begin, std::size_t end, std::size_t from, std::size_t to,
                        std::int64_t& live, std::int64_t& most) const {
  if (end <= from || begin >= to) return;
  if (from <= begin && end <= to) {
    most = std::max(most, live + nodes_[n].most);
    live += nodes_[n].sum;
    return;
  }
  const std::size_t middle = (begin + end) / 2;
  most_in(2 * n, begin, middle, from, to, live, most);
  most_in(2 * n + 1, middle, end, from, to, live, most);
}

}  // namespace cairn::solvers::plan
