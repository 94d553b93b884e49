#include "report/trace_document.hpp"

#include <fmt/format.h>

#include "core/version.hpp"
#include "report/format.hpp"
#include "report/run_document.hpp"

namespace hbmscope {

Document trace_document(const Trace& trace) {
  const RunRequest& request = trace.run.request;
  Document out;
  out.push_back(Paragraph{fmt::format("hbmscope {}   {}   GPU: {}{}", hbmscope_version(),
                                      shape_words(request.shape, request.pass), request.gpu.name,
                                      request.gpu_assumed ? " (assumed)" : "")});
  Table t{"Tile schedule",
          {{"algorithm", false},
           {"stage", false},
           {"requests"},
           {"L2 hits"},
           {"write-backs"},
           {"SM-L2 read"},
           {"SM-L2 write"},
           {"HBM read"},
           {"HBM write"}},
          {},
          {"The events add up to the closed form between SM and L2, and to the simulated L2 before HBM, stage by stage "
           "and tensor by tensor."}};
  for (const TracedAlgorithm& traced : trace.algorithms) {
    for (const TracedStage& stage : traced.stages) {
      const ReadWrite sm = stage.sm_l2.sum(), hbm = stage.l2_hbm.sum();
      t.rows.push_back({std::string(traced.result->algorithm->name), std::string(stage.name),
                        text::integer(stage.requests), text::integer(stage.hits), text::integer(stage.write_backs),
                        text::bytes(sm.read), text::bytes(sm.write), text::bytes(hbm.read), text::bytes(hbm.write)});
    }
  }
  out.push_back(std::move(t));
  return out;
}

}  // namespace hbmscope
