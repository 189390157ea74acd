#pragma once

#include "cairn/core/formats/support/json.h"
#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

namespace cairn::core::formats {

/// Returns the transfers in the JSON form that schedule files use.
OrderedJson to_json(const Graph& graph, const Transfers& transfers);
/// Reads transfers that to_json() has written. Throws InputError if they name values or evicts that do not exist. Does
/// not check the transfers in any other respect.
Transfers read_transfers(const Json& json, const Graph& graph, const Place& top);

}  // namespace cairn::core::formats
