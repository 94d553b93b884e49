// The animation of tiles: what is scaled down and how, and what a real browser makes of the page.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/small_trace.hpp"
#include "cli_checks.hpp"
#include "plot/tiles_animation.hpp"
#include "random_shapes.hpp"
#include "scenario/gpu_file.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;
using nlohmann::json;

namespace {

RunRequest request_of(const AttentionShape& shape, const char* gpu = "H100 SXM") {
  RunRequest r;
  r.shape = shape;
  r.gpu = find_gpu(gpu);
  return r;
}

AttentionShape shape_of(std::int64_t seqlen, std::int64_t heads = 1) {
  AttentionShape s;
  s.seqlen_q = s.seqlen_kv = seqlen;
  s.num_heads = s.num_kv_heads = heads;
  return s;
}

const SmallSchedule& schedule_of(const SmallTrace& t, std::string_view name) {
  for (const SmallSchedule& s : t.schedules) {
    if (s.result->algorithm->name == name) return s;
  }
  throw std::logic_error("no such schedule");
}

/// A Chromium of this machine; empty where there is none.
std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (std::system(("command -v " + std::string(name) + " >/dev/null 2>&1").c_str()) == 0) return name;
  }
  return {};
}

/// Opens the page in a headless Chromium, runs `script` in it, which leaves its findings in `found`, and returns them,
/// with whatever the page had to complain of under "errors".
json in_browser(const std::string& page, const std::string& script, const std::string& options = "") {
  const TemporaryFolder folder;
  std::string driven = page;
  const std::string listen =
      "<script>window.errors = []; addEventListener('error', e => errors.push(String(e.message)));"
      "addEventListener('securitypolicyviolation', e => errors.push('policy ' + e.blockedURI));"
      "for (const k of ['error', 'warn']) console[k] = (...m) => errors.push(m.join(' '));</script>";
  driven.insert(driven.find("<title>"), listen);
  const std::string finish = "<script>(() => { const found = {}; try {" + script +
                             "} catch (e) { errors.push('test: ' + e); } found.errors = errors;"
                             "document.documentElement.replaceChildren(document.createElement('body'));"
                             "document.body.textContent = 'FOUND' + JSON.stringify(found) + 'DNUOF'; })();</script>";
  driven.insert(driven.find("</body>"), finish);
  const std::string path = folder.write("page.html", driven), out = folder.file("out");
  const std::string command = "timeout 60 " + browser() +
                              " --headless=new --no-sandbox --disable-gpu --user-data-dir=" + folder.file("profile") +
                              " " + options + " --dump-dom file://" + path + " >" + out + " 2>/dev/null";
  CHECK(std::system(command.c_str()) == 0);
  const std::string dom = text_of_file(out);
  const std::size_t begin = dom.find("FOUND"), end = dom.rfind("DNUOF");
  REQUIRE(end != std::string::npos);
  std::string text = dom.substr(begin + 5, end - begin - 5);
  for (const auto& [entity, character] : {std::pair{"&lt;", "<"}, std::pair{"&gt;", ">"}, std::pair{"&amp;", "&"}}) {
    for (std::size_t at = 0; (at = text.find(entity, at)) != std::string::npos; ++at)
      text.replace(at, std::string_view(entity).size(), character);
  }
  return json::parse(text);
}

bool skip_without_browser() {
  if (!browser().empty()) return false;
  MESSAGE("skipped: there is no Chromium on this machine");
  return true;
}

/// Helpers of the scripts below.
constexpr const char* kHelpers = R"(
  const root = document.querySelector('.tiles');
  const counts = () => Object.fromEntries([...root.querySelectorAll('.tiles-counter')].map(
    e => [e.dataset.algorithm + ' ' + e.dataset.boundary, Number(e.dataset.bytes)]));
  const words = () => [...root.querySelectorAll('.tiles-counter')].map(e => e.textContent);
  const button = name => root.querySelector('[data-tiles=' + name + ']');
  const press = key => root.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
  const place = () => Number(root.dataset.place);
  const length = Number(button('place').max);
)";

}  // namespace

TEST_CASE("N = 8,192 is shown as 768: 6 x 6 tiles of the same size, in an L2 that holds K and V and not S and P") {
  const SmallTrace t = small_trace(request_of(shape_of(8192)));
  CHECK(t.small.seqlen_q == 768);
  CHECK(t.small.seqlen_kv == 768);
  CHECK(t.small.head_dim == 128);
  CHECK(t.block_q == 128);
  CHECK(t.block_kv == 128);
  CHECK(t.l2_holds == L2Holds::rows);
  constexpr std::int64_t row_tensor = 768 * 128 * 2, square = 768 * 768 * 2;
  CHECK(t.l2 >= Bytes(2 * row_tensor));
  CHECK(t.l2 < Bytes(square));
  // With tiles: Q and V 6 times, K 6 times; S out, in, P out, in; O. Flash: K and V 6 times, or Q and O 6 times.
  CHECK(schedule_of(t, "naive").sm_l2.total() == Bytes(19 * row_tensor + 4 * square));
  CHECK(schedule_of(t, "flash_v2").sm_l2.total() == Bytes(14 * row_tensor + 768 * 4));
  CHECK(schedule_of(t, "flash_v1").sm_l2.total() ==
        Bytes(2 * row_tensor + 6 * (3 * row_tensor + 16 * 768) + row_tensor + 8 * 768));
  // Through HBM flash moves each byte once; naive writes and reads S and P.
  CHECK(schedule_of(t, "flash_v2").l2_hbm.total() == Bytes(4 * row_tensor + 768 * 4));
  CHECK(schedule_of(t, "flash_v1").l2_hbm.total() == Bytes(4 * row_tensor + 2 * 768 * 4));
  CHECK(schedule_of(t, "naive").l2_hbm.total() > Bytes(4 * square));
}

TEST_CASE("the scaled L2 holds what the whole one does") {
  // 64 heads: K and V of the heads in flight are more than the L2 takes, S and P much more.
  RunRequest many = request_of(shape_of(65536, 64));
  many.l2 = Bytes(10 << 20);
  const SmallTrace t = small_trace(many);
  CHECK(t.l2_holds == L2Holds::half_of_kv);
  CHECK(schedule_of(t, "flash_v2").l2_hbm[Tensor::K].read > Bytes(768 * 128 * 2));  // again and again
  RunRequest fits = request_of(shape_of(1024, 2));
  CHECK(small_trace(fits).l2_holds == L2Holds::everything);
  // Then naive reads S and P in L2, and HBM only sees them written.
  CHECK(schedule_of(small_trace(fits), "naive").l2_hbm[Tensor::S].read == Bytes(0));
  RunRequest without = request_of(shape_of(8192));
  without.l2 = Bytes(0);
  const SmallTrace none = small_trace(without);
  CHECK(none.l2_holds == L2Holds::nothing);
  CHECK(schedule_of(none, "naive").l2_hbm.total() == schedule_of(none, "naive").sm_l2.total());
  CHECK(small_trace(request_of(shape_of(512))).l2_holds == L2Holds::as_given);
}

TEST_CASE("any shape is shown, in few tiles, with its kind of mask, and its events add up") {
  Draw draw(12);
  for (int i = 0; i < 120; ++i) {
    RunRequest r = request_of(random_shape(draw, 3000), draw.coin() ? "H200" : "T4");
    if (info(r.shape.dtype).bytes == 1) r.shape.dtype = Dtype::fp16;
    CAPTURE(describe(r.shape, {}));
    const SmallTrace t = small_trace(r);  // an Error where they do not
    const auto tiles = [](std::int64_t rows, std::int64_t block) { return (rows - 1) / block + 1; };
    const std::int64_t wide = std::max(t.block_q, t.block_kv) / std::min(t.block_q, t.block_kv);
    CHECK(tiles(t.small.seqlen_q, t.block_q) <= kMostTilesASide * wide);
    CHECK(tiles(t.small.seqlen_kv, t.block_kv) <= kMostTilesASide * wide);
    CHECK(t.small.num_heads * t.small.batch == 1);
    CHECK(t.small.mask.window_left.has_value() == r.shape.mask.window_left.has_value());
    CHECK(t.small.mask.window_right.has_value() == r.shape.mask.window_right.has_value());
    CHECK(t.schedules.size() == 3);
    for (const SmallSchedule& s : t.schedules) {
      CHECK(s.events.size() < 6000);
      CHECK(s.sm_l2 == total(s.result->algorithm->closed_form(t.small, s.result->plan)));
    }
  }
}

TEST_CASE("the page loads nothing, says what was scaled, and lets no name of a GPU become markup") {
  RunRequest r = request_of(shape_of(8192, 16));
  r.gpu.name = "<script>alert(1)</script>&\"";
  const std::string page = plot::tiles_animation_page(small_trace(r));
  for (const char* loads : {"http:", "https:", "src=", "@import", "url("}) {
    CAPTURE(loads);
    CHECK_FALSE(has(page, loads));
  }
  CHECK(has(page, "&lt;script&gt;alert(1)"));
  CHECK_FALSE(has(page, "<script>alert"));
  CHECK(has(page, "Asked for: forward, batch 1, 16 heads, N 8,192"));
  CHECK(has(page, "scaled down: forward, batch 1, 1 head, N 768"));
  CHECK(has(page, "prefers-reduced-motion"));
}

TEST_CASE("what an earlier pass left lies in HBM from the first event on, and what this one makes does not") {
  for (const char* pass : {"forward", "backward"}) {
    RunRequest request = request_of(shape_of(512));
    request.pass = pass;
    const SmallTrace small = small_trace(request);
    const std::string page = plot::tiles_animation_page(small);
    const std::size_t begin = page.find('{', page.find("application/json"));
    const json data = json::parse(page.substr(begin, page.find("</script>", begin) - begin));
    REQUIRE(data["algorithms"].size() == small.schedules.size());
    for (const json& a : data["algorithms"]) {
      std::string there;
      for (const json& grid : a["grids"]) {
        if (grid[3] == 1) there += data["tensors"][grid[0].get<std::size_t>()]["name"].get<std::string>() + " ";
      }
      CAPTURE(a["name"].get<std::string>());
      if (std::string(pass) == "forward") {
        CHECK(there == "Q K V ");
      } else if (a["name"] == "naive_bwd") {
        CHECK(there == "Q K V P dO ");
      } else if (a["name"] == "flash_v2_bwd") {
        CHECK(there == "Q K V O LSE dO ");
      } else {
        CHECK(there == "Q K V O l m dO ");
      }
    }
  }
}

TEST_CASE("trace --html writes such a page, whole or not at all") {
  const TemporaryFolder folder;
  const std::string path = folder.file("tiles.html");
  const Outcome outcome = run_program({"trace", "--seqlen", "2k", "--causal", "--html", path});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.empty());
  CHECK(text_of_file(path).starts_with("<!DOCTYPE html>"));
  CHECK(has(run_program(words("trace --html -")).out, "</html>"));
  check_complaint(run_program({"trace", "--html", folder.file("no/such/page.html")}), 1, "No such file");
}

TEST_CASE("in a browser: stepping to the end gives each algorithm's bytes, by button, key, slider or one by one") {
  if (skip_without_browser()) return;
  const SmallTrace t = small_trace(request_of(shape_of(8192)));
  const json found = in_browser(plot::tiles_animation_page(t), std::string(kHelpers) + R"(
    found.start = counts();
    button('end').click();
    found.end = counts(); found.words = words(); found.place = place(); found.length = length;
    found.table = Object.fromEntries([...root.querySelectorAll('tr[data-algorithm]')].map(
      e => [e.dataset.algorithm + ' ' + e.dataset.boundary, Number(e.dataset.bytes)]));
    press('Home'); found.home = counts();
    press('End'); found.key = counts();
    button('start').click();
    let least = counts(), grows = true, most = 0;
    for (let i = 0; i < length; ++i) {
      press('ArrowRight');
      const now = counts();
      for (const k in now) grows = grows && now[k] >= least[k];
      least = now;
      // L2 never holds more than it can.
      for (const l2 of root.querySelectorAll('.tiles-l2')) most = Math.max(most, l2.querySelectorAll('.tiles-chip').length);
    }
    found.stepped = counts(); found.grows = grows; found.most = most;
    press('ArrowLeft'); found.back = place();
    button('place').value = '7'; button('place').dispatchEvent(new Event('input')); found.scrubbed = place();
    press('ArrowLeft'); press('ArrowRight'); found.seven = counts();
    press(' '); found.playing = button('play').textContent; press('p'); found.paused = button('play').textContent;
    const before = button('speed').value; press('+'); found.faster = Number(button('speed').value) - Number(before);
    found.panels = root.querySelectorAll('.tiles-panel').length;
    found.cells = [...root.querySelectorAll('.tiles-panel')].map(p => p.querySelectorAll('.tiles-cell').length);
    found.visible = [...root.querySelectorAll('.tiles-controls')].every(e => !e.hidden);
    found.buttons = [...root.querySelectorAll('button')].every(e => e.textContent.length > 0);
  )");
  CAPTURE(found.dump());
  CHECK(found["errors"].empty());
  json expected;
  std::size_t longest = 0;
  for (const SmallSchedule& s : t.schedules) {
    const std::string name(s.result->algorithm->name);
    expected[name + " l2_hbm"] = s.l2_hbm.total().value();
    expected[name + " sm_l2"] = s.sm_l2.total().value();
    longest = std::max(longest, s.events.size());
  }
  for (const auto& [counter, bytes] : found["start"].items()) CHECK(bytes == 0);
  for (const char* when : {"end", "table", "key", "stepped"}) {
    CAPTURE(when);
    CHECK(found[when] == expected);
  }
  CHECK(found["home"] == found["start"]);
  CHECK(found["grows"] == true);
  CHECK(found["length"] == longest);
  CHECK(found["place"] == longest);
  CHECK(found["back"] == longest - 1);
  CHECK(found["scrubbed"] == 7);
  CHECK(found["playing"] == "Pause");
  CHECK(found["paused"] == "Play");
  CHECK(found["faster"] == 1);
  CHECK(found["panels"] == 3);
  // Q, K, V, O of 6 tiles, S and P of 36; with l and m; with LSE.
  CHECK(found["cells"] == json({96, 36, 30}));
  CHECK(found["visible"] == true);
  CHECK(found["buttons"] == true);
  CHECK(found["words"][0] == "5,505,024 B");
  // Tiles of 32 KiB, and statistics.
  CHECK(found["most"].get<std::int64_t>() <= t.l2.value() / 32768 + 18);
}

TEST_CASE("a page of pictures ends with the tiles of its first result, or says why it cannot") {
  const TemporaryFolder folder;
  const std::string result = folder.file("run.json"), page = folder.file("page.html");
  REQUIRE(run_program({"run", "--engine", "sim", "--seqlen", "4k", "--head-dim", "64", "--json", result}).code == 0);
  REQUIRE(run_program({"plot", result, "-o", page}).code == 0);
  CHECK(has(text_of_file(page), "N 4,096, d 64"));
  CHECK(has(text_of_file(page), "class=\"tiles\""));
  json foreign = json::parse(text_of_file(result));
  foreign["gpu"]["name"] = "/etc/<b>.json";
  REQUIRE(run_program({"plot", folder.write("foreign.json", foreign.dump()), "-o", page}).code == 0);
  CHECK_FALSE(has(text_of_file(page), "class=\"tiles\""));
  CHECK(has(text_of_file(page), "No animation of tiles: there is no GPU"));
  CHECK_FALSE(has(text_of_file(page), "/etc/<b>"));
}

TEST_CASE("in a browser: beside pictures the tiles still come to their bytes, without a complaint of the page") {
  if (skip_without_browser()) return;
  const TemporaryFolder folder;
  const std::string result = folder.file("run.json"), page = folder.file("page.html");
  REQUIRE(run_program({"run", "--engine", "sim", "--json", result}).code == 0);
  REQUIRE(run_program({"plot", result, "-o", page}).code == 0);
  const json found =
      in_browser(text_of_file(page), std::string(kHelpers) + "button('end').click(); found.end = counts();");
  CHECK(found["errors"].empty());
  CHECK(found["end"]["flash_v2 l2_hbm"] == 4 * 768 * 128 * 2 + 768 * 4);
}

TEST_CASE("in a browser: dark pages are dark, and who wants less motion gets no transitions") {
  if (skip_without_browser()) return;
  const std::string page = plot::tiles_animation_page(small_trace(request_of(shape_of(2048))));
  const std::string script = std::string(kHelpers) + R"(
    found.paper = getComputedStyle(root).backgroundColor;
    found.ink = getComputedStyle(root).color;
    found.still = getComputedStyle(root.querySelector('.tiles-cell')).transitionDuration;
    found.speed = button('speed').value;
  )";
  const json light = in_browser(page, script, "--blink-settings=preferredColorScheme=1");
  const json dark = in_browser(page, script, "--blink-settings=preferredColorScheme=0 --force-prefers-reduced-motion");
  CHECK(light["paper"] == "rgb(255, 255, 255)");
  CHECK(dark["paper"] == "rgb(21, 24, 28)");
  CHECK(light["ink"] != dark["ink"]);
  CHECK(dark["still"] == "0s");
  CHECK(light["still"] != "0s");
  CHECK(dark["speed"] == "2");
  CHECK(light["errors"].empty());
  CHECK(dark["errors"].empty());
}
