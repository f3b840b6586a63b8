// SPDX-License-Identifier: Apache-2.0
// The report of a replay for programs.
#include <algorithm>
#include <string>

#include "model/wire/ethernet.h"
#include "testbenches/rnic/replay/replay_report.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

using namespace replay;

namespace {

using state = expectation::state;

nlohmann::json packets_json(const replay_report& r) {
  nlohmann::json packets = nlohmann::json::array();
  for (std::size_t i = 0; i < r.p.frames.size(); ++i) {
    const captured_frame& f = r.p.frames[i];
    if (!f.roce || f.connection < 0) continue;
    nlohmann::json j = {
        {"frame", i + 1}, {"connection", f.connection}, {"packet", describe(f.packet)}, {"from_held", f.from_held}};
    const std::size_t e = r.compared.expectation_of(i);
    if (e != 0) {
      const expectation& x = r.compared.expectations()[e - 1];
      j["result"] = x.now == state::matched     ? "matched"
                    : x.now == state::covered   ? "acknowledged together"
                    : x.now == state::different ? "different"
                                                : "missing";
      if (x.answer != 0) j["at_ps"] = r.compared.answers()[x.answer - 1].first_bit;
      const std::size_t q = r.question_of[i];
      if (q != no_frame) j["captured_latency_ps"] = f.at - r.p.frames[q].at;
    } else if (r.run.injected_at[i] != ~sim::time_ps{0}) {
      j["at_ps"] = r.run.injected_at[i];
    }
    if (r.answer_to[i] != 0) {
      const obtained_frame& a = r.compared.answers()[r.answer_to[i] - 1];
      j["answer"] = {{"opcode", wire::traits(a.opcode).name}, {"psn", a.psn}, {"latency_ps", a.latency}};
      if (a.followed) j["answer"]["stages"] = stages_json(a.way);
    }
    packets.push_back(std::move(j));
  }
  return packets;
}

nlohmann::json summary_json(const sample_summary& s) {
  return {{"min_ps", s.minimum}, {"typical_ps", s.typical}, {"p99_ps", s.p99}, {"max_ps", s.maximum}};
}

/// Real host and adapter beside each other, by kind of answer.
nlohmann::json comparison_json(const replay_report& r) {
  nlohmann::json kinds = nlohmann::json::array();
  for (const answer_kind& k : r.latencies) {
    const answer_summaries s = summarise(k);
    kinds.push_back({{"answer", k.name},
                     {"count", s.captured.count},
                     {"captured", summary_json(s.captured)},
                     {"model", summary_json(s.obtained)}});
  }
  return kinds;
}

nlohmann::json losses_json(const both_ends& ends) {
  nlohmann::json losses = nlohmann::json::array();
  for (const lost_packet& l : ends.lost)
    losses.push_back({{"file", l.file},
                      {"frame", l.frame},
                      {"from_held", l.from_held},
                      {"connection", l.connection},
                      {"packet", describe(l.packet)}});
  return losses;
}

nlohmann::json notes_json(const frame_notes& n) {
  return {{"start_ns", n.start_ns},
          {"damage", n.damage},
          {"interfaces", n.interfaces},
          {"cooked", n.cooked},
          {"ip", n.ip},
          {"invented_macs", n.invented_macs},
          {"outer_tags", n.outer_tags},
          {"icrc_made_new", n.icrc_made_new},
          {"checksum_made_new", n.checksum_made_new},
          {"copies", n.copies},
          {"readdressed", n.readdressed}};
}

nlohmann::json latency_json(const replay_report& r) {
  nlohmann::json kinds = nlohmann::json::array();
  for (const auto& [opcode, a] : r.typical)
    kinds.push_back({{"answer", wire::traits(opcode).name},
                     {"psn", a->psn},
                     {"end_to_end_ps", a->way.end() - a->way.start()},
                     {"stages", stages_json(a->way)}});
  return kinds;
}

}  // namespace

nlohmann::json to_json(const replay_report& r) {
  nlohmann::json j = run_header("replay", r.options.common);
  j["capture"] = r.options.capture;
  if (!r.p.ends.other.empty()) {
    j["replayed_capture"] = r.p.ends.replayed;
    j["other_capture"] = r.p.ends.other;
    j["lost"] = losses_json(r.p.ends);
    j["in_one_capture_only"] = r.p.ends.in_one_only;
  }
  j["timing"] = r.options.timing;
  j["compared"] = nlohmann::json::array();
  for (const compared_field& field : compared_fields())
    if (std::count(r.options.ignore.begin(), r.options.ignore.end(), field.name) == 0)
      j["compared"].push_back(field.name);
  j["held"] = r.p.held;
  j["held_addresses"] = nlohmann::json::array();
  for (const wire::gid& g : r.p.held_gids) j["held_addresses"].push_back(wire::to_string(g));
  j["frames"] = r.p.frames.size();
  j["roce_frames"] = r.p.roce_frames;
  j["injected"] = r.run.injected;
  j["posted"] = r.run.posted;
  j["pauses"] = r.run.pauses;
  j["expected_answers"] = r.compared.expectations().size();
  j["matched_answers"] = r.matched;
  j["acknowledged_together"] = r.covered;
  j["different_answers"] = r.different;
  j["missing_answers"] = r.missing;
  j["extra_answers"] = r.extra_answers;
  j["extra_requests"] = r.extra_requests;
  j["fatal_differences"] = r.fatal;
  j["expect"] = r.options.expect;
  j["agree"] = r.agrees();
  j["rejected"] = r.p.rejected;
  j["notes"] = r.p.remarks;
  j["frame_notes"] = notes_json(r.p.notes);
  j["contradicting_reads"] = nlohmann::json::array();
  for (const std::size_t i : r.p.contradictions) j["contradicting_reads"].push_back(i + 1);
  j["latency_compared"] = comparison_json(r);
  j["differences"] = nlohmann::json::array();
  for (std::size_t i = 0; i < r.compared.differences().size(); ++i) {
    const difference& d = r.compared.differences()[i];
    nlohmann::json x = {{"kind", to_string(d.kind)},  {"expected", d.expected},
                        {"obtained", d.obtained},     {"explanation", d.explanation},
                        {"connection", d.connection}, {"fatal", static_cast<bool>(r.is_fatal[i])}};
    x["frame"] = d.frame == 0 ? nlohmann::json(nullptr) : nlohmann::json(d.frame);
    j["differences"].push_back(std::move(x));
  }
  j["connections"] = nlohmann::json::array();
  for (std::size_t i = 0; i < r.p.connections.size(); ++i) {
    const connection& c = r.p.connections[i];
    j["connections"].push_back({{"transport", service_name(c.service)},
                                {"held_qpn", c.held_qpn},
                                {"peer_qpn", c.peer_qpn},
                                {"held_qpn_known", c.held_qpn_known},
                                {"peer_qpn_known", c.peer_qpn_known},
                                {"mtu_known", c.mtu_known},
                                {"held_gid", wire::to_string(c.held_gid)},
                                {"peer_gid", wire::to_string(c.peer_gid)},
                                {"mtu", c.mtu},
                                {"held_messages", c.messages.size()},
                                {"receives", c.receives.count},
                                {"deliveries", r.run.deliveries[i].messages},
                                {"delivered_bytes", r.run.deliveries[i].bytes}});
  }
  j["latency"] = latency_json(r);
  j["packets"] = packets_json(r);
  return j;
}

}  // namespace rnic::program
