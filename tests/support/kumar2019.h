#pragma once

#include "cairn/tests/support/kumar2019/decompositions.h"
#include "cairn/tests/support/kumar2019/pw_remat.h"
#include "cairn/tests/support/kumar2019/schedules.h"
#include "cairn/tests/support/kumar2019/spines.h"
#include "cairn/tests/support/kumar2019/tw_remat.h"

/// Kumar, Purohit, Svitkina, Vee and Wang, "Efficient Rematerialization for Deep Networks" (NeurIPS 2019) with its
/// supplement, implemented literally, without regard to speed. This is the reference for solvers/decomposition,
/// tw_remat and pw_remat, and shares no code with them. In the paper, s(u) is the size of node u and L(u) its cost. The
/// paper has no scratch, in-place or kept outputs. If a printed statement is false, the function says so, and
/// tests/solvers/remat/kumar2019_definitions_test.cpp has the counterexample.
namespace cairn::tests::kumar2019 {}
