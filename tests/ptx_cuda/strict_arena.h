#pragma once

#include "cairn/runtime/support/execution.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/ptx_cuda/interpreter.h"

namespace cairn::tests {

/// While a StrictArena exists, memory that the executor fills with its paint or poison counts as unwritten. So it is a
/// fault if a kernel reads a buffer of the arena that is not yet written or already freed. Two kernels may read such
/// buffers: FindTouched, which searches for paint, and UnpadRows, which loads 16 bytes at a time but stores only the
/// bytes that belong to a row.
class StrictArena {
 public:
  StrictArena() {
    fake::set_worthless_fills({runtime::kArenaPaint, runtime::kPoison, runtime::kDirtyScratch});
    ptx::set_inspectors({"FindTouched", "UnpadRows"});
  }
  ~StrictArena() {
    fake::set_worthless_fills({});
    ptx::set_inspectors({});
  }
  StrictArena(const StrictArena&) = delete;
  StrictArena& operator=(const StrictArena&) = delete;
};

}  // namespace cairn::tests
