#pragma once
#include "report/run_document.hpp"

namespace hbmscope {

/// The lines under the tables of a run: what the paper says, memory, exactness, the whole step, and what else there is
/// to note.
void append_labels(Document& out, const RunResult& result, const RunView& view);

}  // namespace hbmscope
