// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/explain/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rnic::program {

namespace {

const nlohmann::json* same_stage(const nlohmann::json& stages, const nlohmann::json& s) {
  for (const nlohmann::json& each : stages)
    if (each["block"] == s["block"] && each["stage"] == s["stage"]) return &each;
  return nullptr;
}

latency_step::stage stage_change(const nlohmann::json& s, double more_ps, bool is_new, bool is_gone) {
  return {s["block"].get<std::string>(),
          s["stage"].get<std::string>(),
          s["wait"].get<std::string>(),
          more_ps / 1e3,
          is_new,
          is_gone};
}

latency_step step_between(const nlohmann::json& a, const nlohmann::json& b) {
  latency_step step;
  step.from = a["size"].get<std::uint64_t>();
  step.to = b["size"].get<std::uint64_t>();
  step.more_ns = (b["end_to_end_ps"].get<double>() - a["end_to_end_ps"].get<double>()) / 1e3;
  for (const nlohmann::json& s : b["stages"]) {
    const nlohmann::json* before = same_stage(a["stages"], s);
    const double more = s["ps"].get<double>() - (before == nullptr ? 0 : (*before)["ps"].get<double>());
    step.stages.push_back(stage_change(s, more, before == nullptr, false));
  }
  for (const nlohmann::json& s : a["stages"])
    if (same_stage(b["stages"], s) == nullptr)
      step.stages.push_back(stage_change(s, -s["ps"].get<double>(), false, true));
  const double least = std::abs(step.more_ns) / 20;
  step.stages.erase(std::remove_if(step.stages.begin(), step.stages.end(),
                                   [&](const auto& s) { return std::abs(s.more_ns) < std::max(least, 0.001); }),
                    step.stages.end());
  std::stable_sort(step.stages.begin(), step.stages.end(),
                   [](const auto& x, const auto& y) { return std::abs(x.more_ns) > std::abs(y.more_ns); });
  return step;
}

}  // namespace

std::vector<latency_step> latency_steps(const nlohmann::json& rows, std::uint64_t inline_bytes, std::uint64_t mtu) {
  std::vector<latency_step> all;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (!rows[i].contains("stages") || !rows[i - 1].contains("stages")) continue;
    latency_step step = step_between(rows[i - 1], rows[i]);
    const auto between = [&](std::uint64_t edge) { return step.from <= edge && edge < step.to; };
    const auto is_new = [&](const char* stage) {
      return std::any_of(step.stages.begin(), step.stages.end(),
                         [&](const auto& s) { return s.is_new && s.name == stage; });
    };
    if (between(inline_bytes) && is_new("read"))
      step.reasons.push_back(
          fmt::format("inline data ends at {} bytes: the payload, and with it the descriptor, is read from host memory",
                      inline_bytes));
    if (between(mtu))
      step.reasons.push_back(fmt::format("a packet ends at {} bytes (MTU): the message has several", mtu));
    all.push_back(std::move(step));
  }
  return all;
}

nlohmann::json steps_json(const std::vector<latency_step>& steps) {
  nlohmann::json all = nlohmann::json::array();
  for (const latency_step& s : steps) {
    nlohmann::json stages = nlohmann::json::array();
    for (const latency_step::stage& t : s.stages)
      stages.push_back({{"block", t.block},
                        {"stage", t.name},
                        {"wait", t.wait},
                        {"more_ns", t.more_ns},
                        {"new", t.is_new},
                        {"gone", t.is_gone}});
    all.push_back({{"from", s.from}, {"to", s.to}, {"more_ns", s.more_ns}, {"stages", stages}, {"reasons", s.reasons}});
  }
  return all;
}

void print_steps(const std::vector<latency_step>& steps) {
  for (const latency_step& s : steps) {
    fmt::print("\nfrom {} to {} bytes: {:+.3f} ns\n", s.from, s.to, s.more_ns);
    for (const latency_step::stage& t : s.stages)
      fmt::print("  {:<28} {:<18} {:>+10.3f} ns{}{}\n", t.block, t.name, t.more_ns,
                 t.is_new    ? "  new"
                 : t.is_gone ? "  gone"
                             : "",
                 t.wait != "none" && !t.is_gone ? "  waiting: " + t.wait : "");
    for (const std::string& r : s.reasons) fmt::print("  {}\n", r);
  }
}

}  // namespace rnic::program
