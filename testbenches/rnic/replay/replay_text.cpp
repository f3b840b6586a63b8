// SPDX-License-Identifier: Apache-2.0
// The report of a replay for people.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/wire/ethernet.h"
#include "testbenches/rnic/replay/replay_report.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

using namespace replay;

namespace {

constexpr std::size_t packet_lines = 400, difference_lines = 50;  // on the screen; the JSON has all

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

std::string packet_line(const replay_report& r, std::size_t i) {
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

void print_packets(const replay_report& r) {
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

/// Every reason once with its count, then one by one.
void print_differences(const replay_report& r) {
  const auto& differences = r.compared.differences();
  if (differences.empty()) return;
  std::map<std::pair<std::string, std::string>, std::size_t> reasons;
  for (const difference& d : differences)  // a PSN at the end is left to the single ones
    ++reasons[{to_string(d.kind), d.explanation.substr(0, d.explanation.find(": PSN "))}];
  fmt::print("\ndifferences from the real host:\n");
  for (const auto& [reason, count] : reasons) fmt::print("  {:>6} x {}: {}\n", count, reason.first, reason.second);
  fmt::print("\n");
  for (std::size_t i = 0; i < std::min(differences.size(), difference_lines); ++i) {
    const difference& d = differences[i];
    fmt::print("  {}{}{}{}\n", d.frame == 0 ? std::string("not in the capture: ") : fmt::format("frame {}: ", d.frame),
               to_string(d.kind), d.expected.empty() ? "" : "; expected " + d.expected,
               d.obtained.empty() ? "" : "; obtained " + d.obtained);
  }
  if (differences.size() > difference_lines) fmt::print("  ... and {} more\n", differences.size() - difference_lines);
}

/// Medians: a capture's largest say more of the capturing host than of the adapter.
void print_latencies(const replay_report& r) {
  if (r.latencies.empty()) return;
  fmt::print(
      "\n  from question to answer, us   answers   in the capture: least   typical      most   the model: typical\n");
  for (const answer_kind& k : r.latencies) {
    const answer_summaries s = summarise(k);
    fmt::print("  {:<29} {:>7} {:>23} {:>9} {:>9} {:>20}\n", k.name, s.captured.count, microseconds(s.captured.minimum),
               microseconds(s.captured.typical), microseconds(s.captured.maximum), microseconds(s.obtained.typical));
  }
  fmt::print(
      "  the capture's are those of the clock and the place where it was taken: at the peer with the way there and "
      "back,\n"
      "  in a host with its interrupts; the model's are from first bit to first bit at the adapter's port\n");
}

void print_notes(const frame_notes& n) {
  const auto line = [](std::uint64_t count, const char* what) {
    if (count != 0) fmt::print("  {} frames {}\n", count, what);
  };
  if (!n.damage.empty()) fmt::print("  the capture ends too early: {}\n", n.damage);
  line(n.cooked,
       "were captured cooked (Linux SLL), without destination MAC address: it is taken from the frames of its\n"
       "    owner, or from the packet type when it is the capturing host");
  line(n.ip, "were captured without Ethernet header");
  line(n.invented_macs, "have a MAC address of which no frame tells: it was made from the IP address");
  line(n.outer_tags, "had outer VLAN tags (802.1ad, QinQ), which were taken off: the adapter takes one tag");
  line(n.icrc_made_new, "had a wrong ICRC: it was made new");
  line(n.checksum_made_new, "had a wrong IPv4 header checksum: it was made new");
  line(n.copies,
       "are copies of packets that the capture has already, as mirror ports make: not sent again, not replayed");
  line(n.readdressed, "were seen on another link only, and got the MAC addresses of the one that shows the others");
}

void print_losses(const both_ends& ends) {
  if (ends.other.empty()) return;
  fmt::print("  replayed with what {} shows beside it; frame numbers are those of {}\n", ends.other, ends.replayed);
  const auto to = std::count_if(ends.lost.begin(), ends.lost.end(), [](const lost_packet& l) { return !l.from_held; });
  fmt::print("  lost on the way to the adapter {} (not injected), from it {}\n", to,
             static_cast<std::ptrdiff_t>(ends.lost.size()) - to);
  for (std::size_t i = 0; i < std::min(ends.lost.size(), difference_lines); ++i)
    fmt::print("    {} frame {} of {}: {}\n", ends.lost[i].from_held ? "<-" : "->", ends.lost[i].frame,
               ends.lost[i].file, describe(ends.lost[i].packet));
  if (ends.lost.size() > difference_lines) fmt::print("    ... and {} more\n", ends.lost.size() - difference_lines);
  if (ends.in_one_only != 0)
    fmt::print("  packets that only the capture behind the losses has: {}: the other one is not complete\n",
               ends.in_one_only);
}

void print_verdict(const replay_report& r) {
  const std::size_t all = r.compared.differences().size();
  if (r.compared.expectations().empty() && all == 0)
    fmt::print("  no answer to compare\n");
  else if (all == 0)
    fmt::print("  the answers agree\n");
  else
    fmt::print("  the answers {}: {} differences because of which a peer goes on otherwise, {} others (--expect {})\n",
               r.agrees() ? "agree" : "do not agree", r.fatal, all - r.fatal, r.options.expect);
}

std::string queue_pair(std::uint32_t number, bool known) {
  return known ? fmt::format("{:#x}", number) : number != 0 ? fmt::format("{:#x} (made up)", number) : "an unknown one";
}

void print_contradictions(const plan& p) {
  if (p.contradictions.empty()) return;
  fmt::print(
      "  answers of READs with other bytes than WRITEs under the same key had left: {}, the first is frame {}; the "
      "real\n"
      "    host changed its memory itself, or answered wrongly: the adapter is given what was answered\n",
      p.contradictions.size(), *p.contradictions.begin() + 1);
}

void print_summary(const replay_report& r) {
  for (const auto& [opcode, a] : r.typical)
    fmt::print("\n    where the time of a typical {} went (from the first bit of its question to its own):\n{}",
               wire::traits(opcode).name, stages_text(a->way));
  print_latencies(r);
  print_differences(r);
  fmt::print("\n{}: {} frames, {} of RoCE; {}\n", r.p.ends.replayed.empty() ? r.options.capture : r.p.ends.replayed,
             r.p.frames.size(), r.p.roce_frames,
             r.p.held.empty()          ? "nothing to replay"
             : r.p.connections.empty() ? "no connection to replay of " + r.p.held
                                       : "the adapter is " + r.p.held);
  for (const connection& c : r.p.connections)
    fmt::print("  {} connection: queue pair {} at {} with {} at {}, MTU {}{}\n", service_name(c.service),
               queue_pair(c.held_qpn, c.held_qpn_known), wire::to_string(c.held_gid),
               queue_pair(c.peer_qpn, c.peer_qpn_known), wire::to_string(c.peer_gid), c.mtu,
               c.mtu_known ? "" : " (assumed: no packet shows it)");
  fmt::print(
      "  injected {}, posted {}; expected answers {}: matched {} (of these acknowledged together with later ones {}), "
      "different {}, missing {}; extra answers {}, extra requests {}\n",
      r.run.injected, r.run.posted, r.compared.expectations().size(), r.matched, r.covered, r.different, r.missing,
      r.extra_answers, r.extra_requests);
  print_notes(r.p.notes);
  print_losses(r.p.ends);
  if (r.p.shortened) fmt::print("  pauses of more than an hour, and what comes after eight hours, were shortened\n");
  if (r.p.stepped_back)
    fmt::print(
        "  the capture's clock steps back: such frames count as simultaneous with the one before\n"
        "    (reordercap puts the frames of several interfaces in order)\n");
  for (const auto& [why, count] : r.p.rejected) fmt::print("  not replayed: {} ({})\n", count, why);
  for (const auto& [what, count] : r.p.remarks) fmt::print("  note: {} ({})\n", what, count);
  print_contradictions(r.p);
  if (r.run.pauses != 0) fmt::print("  pauses that the adapter asked for and got: {}\n", r.run.pauses);
  if (r.compared.foreign_frames() != 0)
    fmt::print("  frames of the adapter outside of these connections: {}\n", r.compared.foreign_frames());
  print_verdict(r);
}

}  // namespace

void print(const replay_report& r) {
  print_packets(r);
  print_summary(r);
}

}  // namespace rnic::program
