#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// Holds an Instance whose time axis is divided into sections, i.e. ranges of steps during which the set of live blocks
/// does not change. Blocks that are live in the same section must not overlap. A section is left out if a neighbouring
/// section contains all its blocks. Blocks without bytes are left out. Blocks with fixed offsets become obstacles.
struct Sections {
  struct Part {
    std::int32_t section = 0;
    std::int64_t size = 0;  ///< bytes that the block uses during the section
  };
  struct Cover {
    std::int32_t block = 0;
    std::int64_t size = 0;  ///< bytes that the block uses during the section
  };

  /// Divides the instance into sections. Takes time and memory in proportion to the number of pairs of a section and a
  /// block or obstacle in it. If this number would exceed `most`, leaves `count` at -1.
  Sections(const Instance& instance, std::int64_t most);

  std::int32_t count = -1;
  /// Indices in Instance::blocks of the blocks that have bytes and no fixed offset, ordered by first section.
  std::vector<std::int32_t> movable;
  std::vector<std::int64_t> alignments;
  std::vector<std::int64_t> loads;  ///< for each section, the bytes of its movable blocks

  /// Returns the sections in which the block movable[b] is live, ascending.
  std::span<const Part> parts(std::int32_t b) const {
    return {parts_.data() + part_begin_[b], static_cast<std::size_t>(part_begin_[b + 1] - part_begin_[b])};
  }
  /// Returns the movable blocks that are live in a section. Cover::block is an index in `movable`.
  std::span<const Cover> covers(std::int32_t section) const {
    return {covers_.data() + cover_begin_[section],
            static_cast<std::size_t>(cover_begin_[section + 1] - cover_begin_[section])};
  }
  /// Returns the forbidden addresses and the addresses of the section's fixed blocks, as disjoint ranges in ascending
  /// order. A range may be empty.
  std::span<const core::AddressRange> obstacles(std::int32_t section) const {
    return {obstacles_.data() + obstacle_begin_[section],
            static_cast<std::size_t>(obstacle_begin_[section + 1] - obstacle_begin_[section])};
  }
  bool has_obstacles() const { return !obstacles_.empty(); }

  /// Returns whether the block movable[b] is live in consecutive sections with the same size in all of them. The result
  /// is false for blocks with gaps, and for in-place blocks with buffers of different sizes.
  bool plain(std::int32_t b) const { return plain_[b]; }

 private:
  std::vector<std::int64_t> part_begin_, cover_begin_, obstacle_begin_;
  std::vector<Part> parts_;
  std::vector<Cover> covers_;
  std::vector<core::AddressRange> obstacles_;
  std::vector<bool> plain_;
};

}  // namespace cairn::solvers::plan
