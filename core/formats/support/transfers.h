#pragma once

#include "cairn/core/formats/support/json.h"
#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

namespace cairn::core::formats {

/// Returns the transfers as schedule files hold them.
OrderedJson to_json(const Graph& graph, const Transfers& transfers);
/// Reads what to_json() returns. Throws InputError on values and evicts that do not exist. The transfers need not be
/// valid otherwise.
Transfers read_transfers(const Json& json, const Graph& graph, const Place& top);

}  // namespace cairn::core::formats
