#pragma once

#include "cairn/tests/reference/kumar2019/decompositions.h"
#include "cairn/tests/reference/kumar2019/pw_remat.h"
#include "cairn/tests/reference/kumar2019/schedules.h"
#include "cairn/tests/reference/kumar2019/spines.h"
#include "cairn/tests/reference/kumar2019/tw_remat.h"

/// This is a literal implementation of Kumar, Purohit, Svitkina, Vee and Wang, "Efficient Rematerialization for Deep
/// Networks" (NeurIPS 2019) with its supplement, without regard to speed. It is the reference for
/// solvers/decomposition, tw_remat and pw_remat, and shares no code with them. In the paper, s(u) is the size of node u
/// and L(u) its cost. The paper has no scratch, no in-place outputs and no kept outputs. If a printed statement is
/// false, the comment of the function says so, and tests/solvers/remat/kumar2019_definitions_test.cpp has the
/// counterexample.
namespace cairn::tests::kumar2019 {}
