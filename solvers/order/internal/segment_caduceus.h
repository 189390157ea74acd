#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/dominance.h"

namespace cairn::solvers {

/// A caduceus graph whose bends are given by their segments, which an optimal order keeps in one piece (Theorem 6.5).
/// The staff's p segments leave p + 1 gaps: gap g is before staff segment g, gap p behind the last one. Ids count along
/// the staff, then bend by bend. One object solves instance after instance without giving memory back.
class SegmentCaduceus {
 public:
  using Id = std::int32_t;

  void clear();
  void add_staff(const core::Segment& segment) { staff_.push_back(segment); }
  /// The bend may run in the gaps first to last. `segments` must be canonical.
  template <class Segments>
  void add_bend(std::int32_t first, std::int32_t last, const Segments& segments) {
    bend_segments_.insert(bend_segments_.end(), segments.begin(), segments.end());
    bends_.push_back({first, last, static_cast<Id>(bend_segments_.size())});
  }

  /// Algorithm 6: an order of least peak. O(s p log(s p)) for s segments of bends.
  std::vector<Id> optimal_order();
  /// Corollary 7.9: an order that dominates all.
  std::vector<Id> dominant_order();

  std::int64_t peak(std::span<const Id> order) const;

 private:
  struct Bend {
    std::int32_t first, last;  ///< gaps
    Id end;                    ///< at first among bend_segments_, then as an id
  };
  /// What is still to be ordered: a stretch of the staff, and one of every bend.
  struct Part {
    Id staff_begin = 0, staff_end = 0;
    std::vector<Id> begin, end;  ///< of each bend
  };
  /// A topological cut: how far the staff and every bend have got.
  struct Position {
    Id staff = 0;
    std::vector<Id> at;
  };
  /// What a stretch of the order does to memory: a node of the segment tree.
  struct Sums {
    std::int64_t change = 0, peak = 0;
  };

  void index();
  Part whole() const;
  Position beginning(const Part& part) const { return {part.staff_begin, part.begin}; }
  Position least_cut(const Part& part, const Position& least) const;
  std::vector<Id> find_schedule(Part part);
  void mirror(const SegmentCaduceus& original, const Part& part);

  std::vector<Id> optimal_order(const Part& part);
  void lay_out(const Part& part);
  void sum_up(std::int32_t i);
  void place(Id id, std::int32_t gap, bool there);
  bool give_way(const Part& part, Id id);
  Id highest() const;

  std::vector<core::Segment> staff_, bend_segments_;
  std::vector<Bend> bends_;
  std::vector<core::Segment> segments_;      ///< by id
  std::vector<std::int32_t> bend_of_;        ///< by id; -1 for the staff
  std::vector<Id> ranked_;                   ///< of bends, in sort order
  std::vector<std::pair<Id, Id>> mirrored_;  ///< in a mirror: the stretch of the original's ids behind each of its own

  // Algorithm 6. A leaf of the tree is a place in the sequence (gap, staff segment, gap, ...) that could be taken.
  std::vector<std::int32_t> gap_, low_, high_;  ///< by id: where it is, and may be
  std::vector<std::int32_t> first_leaf_;        ///< by id: into leaves_, one for each gap from low_ on
  std::vector<std::int32_t> leaves_;
  std::vector<Id> id_at_;   ///< by leaf
  std::vector<Sums> tree_;  ///< root at 1, leaves from width_ on
  std::int32_t width_ = 1;
  std::vector<std::pair<Id, std::int32_t>> moves_;  ///< since the checkpoint: who, and the gap it left

  std::unique_ptr<SegmentCaduceus> mirror_;
};

}  // namespace cairn::solvers
