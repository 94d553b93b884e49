#pragma once
#include "analysis/trace.hpp"
#include "report/document.hpp"

namespace hbmscope {

/// What a trace came to: its events and bytes by algorithm and stage.
Document trace_document(const Trace& trace);

}  // namespace hbmscope
