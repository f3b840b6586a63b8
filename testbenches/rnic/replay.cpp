// SPDX-License-Identifier: Apache-2.0
// `rnic replay`: re-enacts a capture with the adapter in the place of one of its hosts, and reports how it differs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/wire/ethernet.h"
#include "testbenches/replay/compare.h"
#include "testbenches/replay/plan.h"
#include "testbenches/replay/run.h"
#include "testbenches/rnic/experiment.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

using namespace replay;  // this file is its face

namespace {

constexpr std::size_t packet_lines = 400, difference_lines = 50;  // on the screen; the JSON has all

using state = expectation::state;

/// Everything about a finished replay, and the counts that are asked for.
struct report {
  const replay_options& options;
  const plan& p;
  const comparison& compared;
  const replay_result& run;
  /// `matched` has those that were given together with a later one (`covered`).
  std::uint64_t matched = 0, covered = 0, different = 0, missing = 0;
  std::vector<std::size_t> answer_to;  // by frame of the capture: index into answers() + 1
  std::map<std::size_t, const struct difference*> difference_of;

  report(const replay_options& o, const plan& the_plan, const comparison& c, const replay_result& r)
      : options(o), p(the_plan), compared(c), run(r), answer_to(the_plan.frames.size(), 0) {
    for (const expectation& e : c.expectations()) {
      matched += e.now == state::matched || e.now == state::covered ? 1 : 0;
      covered += e.now == state::covered ? 1 : 0;
      different += e.now == state::different ? 1 : 0;
      missing += e.now == state::open ? 1 : 0;
    }
    for (std::size_t i = 0; i < c.answers().size(); ++i) {
      const std::size_t q = c.answers()[i].question;
      // Of the packets of a READ's answer the last one is followed: with it the question is answered.
      if (q != 0 && (answer_to[q - 1] == 0 || (c.answers()[i].followed && !c.answers()[answer_to[q - 1] - 1].followed)))
        answer_to[q - 1] = i + 1;
    }
    for (const struct difference& d : c.differences())
      if (d.frame != 0) difference_of.emplace(d.frame, &d);
  }
};

/// The way from a question to its answer in one line.
std::string stages_line(const sim::span& way) {
  std::string line;
  sim::time_ps before = way.start();
  for (unsigned i = 0; i < way.count(); ++i) {
    line += fmt::format("{}{} {:.1f}", i == 0 ? "" : ", ", way[i].stage, static_cast<double>(way[i].at - before) / 1e3);
    before = way[i].at;
  }
  return fmt::format("{:>25} ns: {}\n", "", line);
}

std::string packet_line(const report& r, std::size_t i) {
  const captured_frame& f = r.p.frames[i];
  const std::string what = describe(f.packet);
  const auto d = r.difference_of.find(i + 1);
  const std::string differs = d == r.difference_of.end()
                                  ? ""
                                  : std::string("   != ") + to_string(d->second->kind) +
                                        (d->second->obtained.empty() ? "" : ": " + d->second->obtained);
  if (f.connection < 0) return fmt::format("{:>6} {:>14}    {}   (not replayed)\n", i + 1, "", what);
  if (f.from_held) {
    const std::size_t e = r.compared.expectation_of(i);
    const std::size_t answer = e == 0 ? 0 : r.compared.expectations()[e - 1].answer;
    const sim::time_ps at = answer == 0 ? 0 : r.compared.answers()[answer - 1].first_bit - r.run.started_at;
    return fmt::format("{:>6} {:>14} <- {}{}\n", i + 1, answer == 0 ? "" : microseconds(at), what,
                       differs.empty() ? "   as captured" : differs);
  }
  const sim::time_ps at = r.run.injected_at[i];
  std::string line =
      fmt::format("{:>6} {:>14} -> {}", i + 1, at == ~sim::time_ps{0} ? "" : microseconds(at - r.run.started_at), what);
  if (r.answer_to[i] != 0) {
    const obtained_frame& a = r.compared.answers()[r.answer_to[i] - 1];
    line += fmt::format("   answered by {} PSN {} after {} us", wire::traits(a.opcode).name, a.psn,
                        microseconds(a.latency));
    if (a.followed) return line + differs + "\n" + stages_line(a.way);
  }
  return line + differs + "\n";
}

void print_packets(const report& r) {
  fmt::print("  frame           us    packet (-> into the adapter, <- from it)\n");
  std::size_t lines = 0, more = 0;
  for (std::size_t i = 0; i < r.p.frames.size(); ++i) {
    if (!r.p.frames[i].roce) continue;
    if (lines++ < packet_lines)
      fmt::print("{}", packet_line(r, i));
    else
      ++more;
  }
  if (more != 0) fmt::print("   ... and {} more packets\n", more);
}

/// Of each kind of answer the one with the median latency among those that were followed.
std::map<std::uint8_t, const obtained_frame*> typical_answers(const report& r) {
  std::map<std::uint8_t, std::vector<const obtained_frame*>> by_opcode;
  for (const obtained_frame& a : r.compared.answers())
    if (a.followed) by_opcode[a.opcode].push_back(&a);
  std::map<std::uint8_t, const obtained_frame*> typical;
  for (auto& [opcode, all] : by_opcode) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
    std::nth_element(all.begin(), middle, all.end(), [](const auto* a, const auto* b) {
      return a->latency != b->latency ? a->latency < b->latency : a->first_bit < b->first_bit;
    });
    typical[opcode] = *middle;
  }
  return typical;
}

/// Every reason once with its count, then one by one.
void print_differences(const report& r) {
  const auto& differences = r.compared.differences();
  if (differences.empty()) return;
  std::map<std::pair<std::string, std::string>, std::size_t> reasons;
  for (const struct difference& d : differences)  // a PSN at the end is left to the single ones
    ++reasons[{to_string(d.kind), d.explanation.substr(0, d.explanation.find(": PSN "))}];
  fmt::print("\ndifferences from the real host:\n");
  for (const auto& [reason, count] : reasons) fmt::print("  {:>6} x {}: {}\n", count, reason.first, reason.second);
  fmt::print("\n");
  for (std::size_t i = 0; i < std::min(differences.size(), difference_lines); ++i) {
    const struct difference& d = differences[i];
    fmt::print("  {}{}{}{}\n", d.frame == 0 ? std::string("not in the capture: ") : fmt::format("frame {}: ", d.frame),
               to_string(d.kind), d.expected.empty() ? "" : "; expected " + d.expected,
               d.obtained.empty() ? "" : "; obtained " + d.obtained);
  }
  if (differences.size() > difference_lines) fmt::print("  ... and {} more\n", differences.size() - difference_lines);
}

void print_summary(const report& r) {
  for (const auto& [opcode, a] : typical_answers(r))
    fmt::print("\n    where the time of a typical {} went (from the first bit of its question to its own):\n{}",
               wire::traits(opcode).name, stages_text(a->way));
  print_differences(r);
  fmt::print("\n{}: {} frames, {} of RoCE; {}\n", r.options.capture, r.p.frames.size(), r.p.roce_frames,
             r.p.held.empty()          ? "nothing to replay"
             : r.p.connections.empty() ? "no connection to replay of " + r.p.held
                                       : "the adapter is " + r.p.held);
  for (const connection& c : r.p.connections)
    fmt::print("  {} connection: queue pair {:#x} at {} with {:#x} at {}, MTU {}\n",
               c.service == wire::transport::uc ? "UC" : "RC", c.held_qpn, wire::to_string(c.held_gid), c.peer_qpn,
               wire::to_string(c.peer_gid), c.mtu);
  fmt::print(
      "  injected {}, posted {}; expected answers {}: matched {} (of these acknowledged together with later ones {}), "
      "different {}, missing {}\n",
      r.run.injected, r.run.posted, r.compared.expectations().size(), r.matched, r.covered, r.different, r.missing);
  if (r.p.shortened) fmt::print("  pauses of more than an hour, and what comes after eight hours, were shortened\n");
  if (r.p.stepped_back)
    fmt::print("  the capture's clock steps back: such frames count as simultaneous with the one before\n");
  for (const auto& [why, count] : r.p.rejected) fmt::print("  not replayed: {} ({})\n", count, why);
  if (r.run.pauses != 0) fmt::print("  pauses that the adapter asked for and got: {}\n", r.run.pauses);
  if (r.compared.foreign_frames() != 0)
    fmt::print("  frames of the adapter outside of these connections: {}\n", r.compared.foreign_frames());
}

nlohmann::json packets_json(const report& r) {
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

nlohmann::json latency_json(const report& r) {
  nlohmann::json kinds = nlohmann::json::array();
  for (const auto& [opcode, a] : typical_answers(r))
    kinds.push_back({{"answer", wire::traits(opcode).name},
                     {"psn", a->psn},
                     {"end_to_end_ps", a->way.end() - a->way.start()},
                     {"stages", stages_json(a->way)}});
  return kinds;
}

nlohmann::json to_json(const report& r) {
  nlohmann::json j = run_header("replay", r.options.common);
  j["capture"] = r.options.capture;
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
  j["rejected"] = r.p.rejected;
  j["differences"] = nlohmann::json::array();
  for (const struct difference& d : r.compared.differences()) {
    nlohmann::json x = {{"kind", to_string(d.kind)},
                        {"expected", d.expected},
                        {"obtained", d.obtained},
                        {"explanation", d.explanation},
                        {"connection", d.connection}};
    x["frame"] = d.frame == 0 ? nlohmann::json(nullptr) : nlohmann::json(d.frame);
    j["differences"].push_back(std::move(x));
  }
  j["connections"] = nlohmann::json::array();
  for (const connection& c : r.p.connections)
    j["connections"].push_back({{"transport", c.service == wire::transport::uc ? "UC" : "RC"},
                                {"held_qpn", c.held_qpn},
                                {"peer_qpn", c.peer_qpn},
                                {"held_gid", wire::to_string(c.held_gid)},
                                {"peer_gid", wire::to_string(c.peer_gid)},
                                {"mtu", c.mtu},
                                {"held_messages", c.messages.size()},
                                {"receives", c.receives}});
  j["latency"] = latency_json(r);
  j["packets"] = packets_json(r);
  return j;
}

/// The user's capture is there and is not among the files to be written, which are different ones.
void check_files(const replay_options& options) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(options.capture, ignored);
  if (!std::filesystem::exists(status)) throw usage_error(options.capture + ": no such file");
  if (std::filesystem::is_directory(status)) throw usage_error(options.capture + ": is a directory");
  if (!std::filesystem::is_regular_file(status)) throw usage_error(options.capture + ": is not a regular file");
  if (std::filesystem::file_size(options.capture, ignored) == 0) throw usage_error(options.capture + ": is empty");
  std::vector<std::string> results;
  for (const std::string& file : {options.output, options.common.pcap_file, options.common.json_file}) {
    if (file.empty()) continue;
    if (std::filesystem::equivalent(file, options.capture, ignored))
      throw usage_error(file + ": is the capture to be replayed");
    for (const std::string& other : results)
      if (std::filesystem::weakly_canonical(file, ignored) == std::filesystem::weakly_canonical(other, ignored))
        throw usage_error(file + ": is named for two results");
    results.push_back(file);
  }
}

}  // namespace

int run_replay(const replay_options& options) {
  check_files(options);
  replay_settings settings;
  for (const std::string& file : {options.output, options.common.pcap_file})
    if (!file.empty()) settings.outputs.push_back(file);
  plan p = make_plan(options.capture, options.hold);
  for (const std::string& file : {options.output, options.common.pcap_file, options.common.json_file})
    check_writable(options.common, file);
  settings.system = system_from(options.common, traffic_options{}, demand{}, nullptr);
  settings.captured_timing = options.timing == "captured";
  for (const compared_field& field : compared_fields())
    if (std::count(options.ignore.begin(), options.ignore.end(), field.name) != 0) settings.ignored.insert(field.kind);
  std::unique_ptr<comparison> compared;
  replay_result result;
  {
    progress shown(options.common, "replay", p.frames.size());
    result = run_plan(p, settings, compared, [&shown](std::uint64_t done) { shown.at(done); });
  }
  const report r(options, p, *compared, result);
  print_packets(r);
  print_summary(r);
  if (!options.common.json_file.empty()) write_text(options.common.json_file, to_json(r).dump(2) + "\n");
  return 0;
}

}  // namespace rnic::program
