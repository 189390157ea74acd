#pragma once

#include "cairn/tests/support/kumar2019/decompositions.h"
#include "cairn/tests/support/kumar2019/pw_remat.h"
#include "cairn/tests/support/kumar2019/schedules.h"
#include "cairn/tests/support/kumar2019/spines.h"
#include "cairn/tests/support/kumar2019/tw_remat.h"

/// Kumar, Purohit, Svitkina, Vee and Wang, "Efficient Rematerialization for Deep Networks" (NeurIPS 2019) with its
/// supplement, written out literally and slowly from the text. This is the reference for solvers/decomposition,
/// tw_remat and pw_remat, and shares no code with them. Of a graph it reads nodes, inputs, sizes and costs: s(u) and
/// L(u). Scratch, in-place and kept outputs are not in the paper. Where the printed text does not hold, the function
/// says so, and tests/solvers/remat/kumar2019_definitions_test.cpp has the counterexample.
namespace cairn::tests::kumar2019 {}
