#include "report/profile_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/printable.hpp"
#include "core/version.hpp"
#include "report/format.hpp"
#include "report/profile_words.hpp"
#include "report/run_sections.hpp"

namespace hbmscope {
namespace {

constexpr std::size_t kLongestName = 22;
constexpr std::size_t kMostNames = 8;

std::string shortened(std::string name) {
  if (name.size() <= kLongestName) return name;
  name.resize(kLongestName - 3);
  while (!name.empty() && (static_cast<unsigned char>(name.back()) & 0x80) != 0) name.pop_back();  // a cut character
  return name + "...";
}

std::string bytes_or_none(const Known<Bytes>& bytes) {
  return bytes ? text::bytes(*bytes) : std::string(kNone);
}

/// Reads at sm_l2 are to agree within half a percent, so two decimals would hide what matters.
std::string close_ratio(const std::optional<double>& ratio) {
  if (!ratio) return std::string(kNone);
  return *ratio < 10 ? fmt::format("{:.4f}", *ratio) : text::ratio(*ratio);
}

std::string dimensions(const std::optional<std::array<std::int64_t, 3>>& sides) {
  if (!sides) return "unknown";
  return fmt::format("{} x {} x {}", (*sides)[0], (*sides)[1], (*sides)[2]);
}

std::string plan_words(const TilePlan& plan) {
  if (plan.gemm_tile) return fmt::format("GEMM tiles {} x {}", (*plan.gemm_tile)[0], (*plan.gemm_tile)[1]);
  return plan.block_q > 0 ? fmt::format("tiles {} x {}", plan.block_q, plan.block_kv) : std::string("no tiles");
}

std::string_view who_predicts(const ComparisonRow& row) {
  if (row.predicted == Boundary::compulsory) return "compulsory";
  return row.provenance == Provenance::simulated ? "simulated" : "closed form";
}

class ProfileReport {
 public:
  explicit ProfileReport(const ProfileImport& import) : p_(import) {}

  Document write() {
    header();
    answer();
    counted_table();
    if (p_.beside) beside_table();
    names();
    for (const std::string& w : p_.warnings) label("Note", w + ".");
    if (!p_.beside)
      label("Note", "to put a prediction beside these, name the algorithm, its tiles and the shape: " +
                        options_of_prediction(p_));  // to be copied, so without a full stop
    return std::move(out_);
  }

 private:
  void label(std::string_view name, std::string words) {
    out_.push_back(Labelled{std::string(name), std::move(words)});
  }
  [[nodiscard]] bool has_stages() const { return p_.beside && p_.algorithm()->stages.size() > 1; }
  /// The comparison with the whole algorithm, one of them where its kernel ran several times.
  [[nodiscard]] const LaunchComparison* whole() const {
    return p_.comparisons.empty() ? nullptr : &p_.comparisons.back();
  }

  void header() {
    std::string words = fmt::format("hbmscope {}   counters of {}   ", hbmscope_version(), printable(p_.source));
    const std::size_t selected = p_.launches.size();
    words += p_.kernel.empty()
                 ? fmt::format("{} launch{}", selected, selected == 1 ? "" : "es")
                 : fmt::format("{} of {} launches match {}", selected, p_.launches_in_file, printable(p_.kernel));
    out_.push_back(Paragraph{words});
    if (!p_.beside) return;
    const RunRequest& r = p_.beside->request;
    out_.push_back(Paragraph{fmt::format("beside {}, {}: {}   GPU: {}{}", p_.algorithm()->algorithm->name,
                                         plan_words(p_.algorithm()->plan), shape_words(r.shape, r.pass), r.gpu.name,
                                         r.gpu_assumed ? " (assumed)" : "")});
  }

  void answer() {
    const bool repeated = p_.launches.size() > 1 && p_.beside && !has_stages();
    const std::string who = p_.launches.size() == 1 || repeated
                                ? shortened(short_kernel_name(p_.launches[0].kernel.name))
                                : fmt::format("{} launches", p_.launches.size());
    const CountedTraffic& traffic = whole() != nullptr ? whole()->hbm : p_.hbm;
    const Known<Bytes>&read = traffic.read.bytes, &write = traffic.write.bytes, hbm = traffic.total();
    std::string words = fmt::format("HBM bytes of {} were not counted", who);
    if (hbm) {
      words = fmt::format("{} moved {} through HBM{}", who, text::bytes(*hbm),
                          repeated ? fmt::format(" (launch {})", p_.launches.back().kernel.id) : "");
    } else if (read) {
      words = fmt::format("{} read {} from HBM; bytes written were not counted", who, text::bytes(*read));
    } else if (write) {
      words = fmt::format("{} wrote {} to HBM; bytes read were not counted", who, text::bytes(*write));
    }
    if (const LaunchComparison* c = whole(); c != nullptr && hbm) {
      for (const ComparisonRow& row : c->rows) {
        if (row.counted != Boundary::l2_hbm || !row.total_ratio) continue;
        words +=
            row.predicted == Boundary::compulsory
                ? fmt::format(": {}x the compulsory bytes", text::ratio(*row.total_ratio))
                : fmt::format(", {}x the simulated {}", text::ratio(*row.total_ratio), text::bytes(row.bytes->total()));
      }
    }
    out_.push_back(Paragraph{words + ".", true});
  }

  void counted_table() {
    Table t{"Counted by the hardware",
            {{"", false}, {"", false}, {"HBM read"}, {"HBM write"}, {"SM read"}, {"SM write"}, {"L2 lookup"}, {"time"}},
            {},
            {}};
    if (has_stages()) t.columns.insert(t.columns.begin() + 2, {"", false});
    for (const CountedLaunch& launch : p_.launches) {
      std::vector<std::string> cells{std::to_string(launch.kernel.id),
                                     shortened(short_kernel_name(launch.kernel.name))};
      if (has_stages()) cells.emplace_back(launch.stage);
      for (const CountedBytes* bytes :
           {&launch.hbm.read, &launch.hbm.write, &launch.sm.read, &launch.sm.write, &launch.l2_lookup})
        cells.push_back(bytes_or_none(bytes->bytes));
      cells.push_back(launch.time ? text::seconds(*launch.time) : std::string(kNone));
      t.rows.push_back(std::move(cells));
    }
    not_counted(t);
    if (std::any_of(p_.launches.begin(), p_.launches.end(),
                    [](const CountedLaunch& launch) { return static_cast<bool>(launch.l2_lookup.bytes); })) {
      t.notes.emplace_back(
          "L2 lookup: sectors that reads look up, times 32 B. SMs that ask for a sector at one time share a lookup, so "
          "it stands beside no prediction.");
    }
    rounded(t);
    out_.push_back(std::move(t));
  }

  /// Which columns are empty and how to fill them; one line a column.
  void not_counted(Table& t) const {
    std::set<std::string> said;
    const auto say = [&](const char* column, const auto& known) {
      if (!known && said.insert(column).second) t.notes.push_back(fmt::format("{}: {}.", column, known.reason));
    };
    for (const CountedLaunch& launch : p_.launches) {
      say("HBM read", launch.hbm.read.bytes);
      say("HBM write", launch.hbm.write.bytes);
      say("SM read", launch.sm.read.bytes);
      say("SM write", launch.sm.write.bytes);
      say("L2 lookup", launch.l2_lookup.bytes);
      say("time", launch.time);
    }
  }

  void rounded(Table& t) const {
    double step = 0;
    for (const CountedLaunch& launch : p_.launches) {
      for (const CountedBytes* bytes :
           {&launch.hbm.read, &launch.hbm.write, &launch.sm.read, &launch.sm.write, &launch.l2_lookup})
        step = std::max(step, bytes->step);
    }
    if (step <= 32) return;  // one sector is as fine as a counter gets
    t.notes.push_back(
        fmt::format("ncu rounded these figures, to steps of up to {}: ncu --print-units base keeps all "
                    "digits.",
                    text::bytes(Bytes(static_cast<std::int64_t>(step)))));
  }

  void beside_table() {
    Table t{"Counted beside predicted",
            {{"", false}, {"", false}, {"predicted"}, {"counted"}, {"counted/predicted"}},
            {},
            {}};
    if (p_.comparisons.size() > 1) t.columns.insert(t.columns.begin(), {"", false});
    for (const LaunchComparison& c : p_.comparisons) {
      for (const ComparisonRow& row : c.rows) add_rows(t, c, row);
    }
    for (const LaunchComparison& c : p_.comparisons) {
      for (const Difference& d : c.differences) t.notes.push_back(who(c, ": ") + difference_words(d) + ".");
    }
    out_.push_back(std::move(t));
  }

  /// The launch or the stage that a comparison is about, where there are several.
  [[nodiscard]] std::string who(const LaunchComparison& c, std::string_view end) const {
    if (p_.comparisons.size() == 1) return "";
    if (!has_stages()) return fmt::format("launch {}{}", p_.launches[c.launches[0]].kernel.id, end);
    return fmt::format("{}{}", c.stage, end);
  }

  void add_rows(Table& t, const LaunchComparison& c, const ComparisonRow& row) const {
    const bool hbm = row.counted == Boundary::l2_hbm;
    const CountedTraffic& counters = hbm ? c.hbm : c.sm;
    const std::string where = hbm ? "HBM" : "SM";
    if (!row.bytes) {
      t.notes.push_back(fmt::format("{}{} {}: {}: {}.", who(c, ", "), where, who_predicts(row), name(row.bytes.status),
                                    row.bytes.reason));
      return;
    }
    const auto add = [&](const char* what, Bytes predicted, const Known<Bytes>& counted,
                         const std::optional<double>& ratio) {
      t.rows.push_back({fmt::format("{} {}", where, what), std::string(who_predicts(row)), text::bytes(predicted),
                        bytes_or_none(counted), close_ratio(ratio)});
      if (p_.comparisons.size() > 1) t.rows.back().insert(t.rows.back().begin(), who(c, ""));
    };
    add("read", row.bytes->read, counters.read.bytes, row.read_ratio);
    add("write", row.bytes->write, counters.write.bytes, row.write_ratio);
    const Known<Bytes> total = counters.total();
    if (hbm && (!has_stages() || c.stage == "all")) add("total", row.bytes->total(), total, row.total_ratio);
    if (!row.least_total || row.most_total->as_double() <= 1.01 * row.least_total->as_double()) return;
    std::string words = fmt::format("{}simulated total {} to {}, by how CTAs keep pace", who(c, ": "),
                                    text::bytes(*row.least_total), text::bytes(*row.most_total));
    if (total) {
      words += fmt::format("; counted {} is {}", text::bytes(*total),
                           *total < *row.least_total  ? "below"
                           : *total > *row.most_total ? "above"
                                                      : "inside");
    }
    t.notes.push_back(words + ".");
  }

  void names() {
    std::set<std::string> said;
    for (const CountedLaunch& launch : p_.launches) {
      const NcuKernel& k = launch.kernel;
      if (!said.insert(k.name).second) continue;
      if (said.size() > kMostNames) return label("Launches", "more names with --json.");
      label(fmt::format("Launch {}", k.id),
            fmt::format("{}, grid {}, block {}{}", printable(k.name), dimensions(k.grid), dimensions(k.block),
                        k.compute_capability.empty()
                            ? ""
                            : fmt::format(", compute capability {}", printable(k.compute_capability))));
    }
  }

  const ProfileImport& p_;
  Document out_;
};

}  // namespace

Document profile_document(const ProfileImport& import) {
  return ProfileReport(import).write();
}

}  // namespace hbmscope
