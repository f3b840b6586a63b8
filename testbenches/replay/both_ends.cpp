// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/both_ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "testbenches/bench/usage_error.h"
#include "testbenches/replay/compare.h"
#include "testbenches/replay/plan.h"
#include "testbenches/replay/same_packet.h"

namespace rnic::replay {

namespace {

using indices = std::vector<std::size_t>;

/// One direction: to the held host or from it.
struct direction {
  indices only[2];                                           // frames of one capture
  std::vector<std::pair<std::size_t, std::size_t>> in_both;  // frame of the first, frame of the second
};

class joining {
 public:
  joining(plan& first, plan& second, const std::vector<wire::gid>& held) : plans_{&first, &second}, held_(held) {}
  void pair_up();
  const direction& way(bool from_held) const { return ways_[from_held ? 1 : 0]; }
  /// Which capture was taken where the direction's packets were before losses.
  int sending_end(bool from_held) const;
  std::int64_t offset() const { return offset_; }
  bool empty() const { return ways_[0].in_both.empty() && ways_[1].in_both.empty(); }

 private:
  const captured_frame& frame(int which, std::size_t i) const { return plans_[which]->frames[i]; }
  bool is_held(const wire::gid& g) const { return std::find(held_.begin(), held_.end(), g) != held_.end(); }
  void collect(int which);
  std::int64_t shift(const direction& w) const;
  void match(indices first, indices second);

  plan* plans_[2];
  const std::vector<wire::gid>& held_;
  std::unordered_map<std::uint64_t, std::pair<indices, indices>> same_;  // by hash of the packet
  std::int64_t offset_ = 0;                                              // second's clock less first's
  direction ways_[2];
};

void joining::collect(int which) {
  for (std::size_t i = 0; i < plans_[which]->frames.size(); ++i) {
    const captured_frame& f = frame(which, i);
    if (!f.roce || is_held(f.packet.sgid) == is_held(f.packet.dgid)) continue;
    auto& both = same_[packet_hash(f)];
    (which == 0 ? both.first : both.second).push_back(i);
  }
}

/// Median difference of the two clocks, by packets that both have.
std::int64_t joining::shift(const direction& w) const {
  std::vector<std::int64_t> shifts;
  for (const auto& [a, b] : w.in_both)
    shifts.push_back(static_cast<std::int64_t>(frame(1, b).at) - static_cast<std::int64_t>(frame(0, a).at));
  if (shifts.empty()) return 0;
  const auto middle = shifts.begin() + static_cast<std::ptrdiff_t>(shifts.size() / 2);
  std::nth_element(shifts.begin(), middle, shifts.end());
  return *middle;
}

/// Sendings of one packet: those nearest in time belong together, and keep their order.
void joining::match(indices first, indices second) {
  const bool swapped = first.size() > second.size();
  const indices &fewer = swapped ? second : first, &more = swapped ? first : second;
  const int few = swapped ? 1 : 0;
  const auto at = [&](int which, std::size_t i) {
    return static_cast<std::int64_t>(frame(which, i).at) + (which == 0 ? offset_ : 0);
  };
  direction& w = ways_[is_held(frame(few, fewer.empty() ? 0 : fewer.front()).packet.sgid) ? 1 : 0];
  std::size_t next = 0;
  for (std::size_t i = 0; i < fewer.size(); ++i) {
    const std::size_t latest = more.size() - (fewer.size() - i);  // leaves one for each that follows
    std::size_t best = next;
    for (std::size_t j = next; j <= latest; ++j)
      if (std::abs(at(1 - few, more[j]) - at(few, fewer[i])) < std::abs(at(1 - few, more[best]) - at(few, fewer[i])))
        best = j;
    for (; next < best; ++next) w.only[1 - few].push_back(more[next]);
    next = best + 1;
    w.in_both.emplace_back(swapped ? more[best] : fewer[i], swapped ? fewer[i] : more[best]);
  }
  for (; next < more.size(); ++next) {
    direction& own = ways_[is_held(frame(1 - few, more[next]).packet.sgid) ? 1 : 0];
    own.only[1 - few].push_back(more[next]);
  }
}

void joining::pair_up() {
  collect(0);
  collect(1);
  // Packets that both have once tell how the clocks stand to each other.
  direction once;
  for (const auto& [hash, both] : same_)
    if (both.first.size() == 1 && both.second.size() == 1) once.in_both.emplace_back(both.first[0], both.second[0]);
  offset_ = shift(once);
  for (auto& [hash, both] : same_) match(both.first, both.second);
  for (direction& w : ways_)
    for (indices& only : w.only) std::sort(only.begin(), only.end());
}

int joining::sending_end(bool from_held) const {
  const direction& w = way(from_held);
  if (w.only[0].size() != w.only[1].size()) return w.only[0].size() > w.only[1].size() ? 0 : 1;
  // Nothing was lost: whichever shows this direction's packets earlier, the other direction's clock being the same.
  const std::int64_t here = shift(w), back = shift(way(!from_held));
  return here >= back ? 0 : 1;
}

/// `shift`: what the clock of the capture that is replayed shows more.
lost_packet lose(const plan& p, std::size_t i, const std::string& file, bool from_held, std::int64_t shift) {
  lost_packet l;
  l.file = file;
  l.frame = i + 1;
  l.at = static_cast<sim::time_ps>(std::max<std::int64_t>(0, static_cast<std::int64_t>(p.frames[i].at) + shift));
  l.from_held = from_held;
  l.packet = p.frames[i].packet;
  return l;
}

}  // namespace

void join_ends(plan& p, plan& second, const std::string& first_file, const std::string& second_file,
               const std::vector<wire::gid>& held) {
  joining j(p, second, held);
  j.pair_up();
  if (j.empty()) throw usage_error(second_file + ": has no packet in common with " + first_file);
  plan* plans[] = {&p, &second};
  const std::string* files[] = {&first_file, &second_file};
  const int replayed = j.sending_end(true);
  both_ends out;
  out.replayed = *files[replayed];
  out.other = *files[1 - replayed];
  for (const bool from_held : {false, true}) {
    const int sent = j.sending_end(from_held);
    for (const std::size_t i : j.way(from_held).only[sent]) {
      out.lost.push_back(lose(*plans[sent], i, *files[sent], from_held, (replayed - sent) * j.offset()));
      if (from_held || sent != replayed) continue;
      plans[sent]->frames[i].roce = false;
      ++plans[sent]->rejected["lost on the way to the adapter"];
    }
    out.in_one_only += j.way(from_held).only[1 - sent].size();
  }
  std::stable_sort(out.lost.begin(), out.lost.end(),
                   [](const lost_packet& a, const lost_packet& b) { return a.at < b.at; });
  if (replayed == 1) std::swap(p, second);
  p.ends = std::move(out);
}

void place_losses(plan& p) {
  for (lost_packet& l : p.ends.lost)
    for (std::size_t i = 0; i < p.connections.size() && l.connection < 0; ++i) {
      const connection& c = p.connections[i];
      const wire::packet& x = l.packet;
      const bool here = l.from_held ? x.sgid == c.held_gid && x.dgid == c.peer_gid && x.bth.dest_qp == c.peer_qpn
                                    : x.dgid == c.held_gid && x.sgid == c.peer_gid && x.bth.dest_qp == c.held_qpn;
      if (here && x.encap == c.encap) l.connection = static_cast<int>(i);
    }
}

namespace {

/// Requests of the held host whose PSNs go up: each begins at the first one or where the host goes back.
struct sending_run {
  std::vector<std::size_t> frames;
  std::vector<wire::psn_t> psns;
};

std::vector<sending_run> runs_of(const plan& p, int connection) {
  std::vector<sending_run> runs;
  for (std::size_t i = 0; i < p.frames.size(); ++i) {
    const captured_frame& f = p.frames[i];
    if (f.connection != connection || !f.from_held || !wire::traits(f.packet.bth.opcode).request) continue;
    const wire::psn_t psn = f.packet.bth.psn;
    if (runs.empty() || !psn.after(runs.back().psns.back())) runs.emplace_back();
    runs.back().frames.push_back(i);
    runs.back().psns.push_back(psn);
  }
  return runs;
}

/// The host went back to a packet because it, sent in a run before, did not arrive.
bool is_healed_by(const plan& p, const lost_packet& l, const sending_run& run) {
  return l.from_held && wire::traits(l.packet.bth.opcode).request && p.frames[run.frames.front()].at > l.at &&
         std::find(run.psns.begin(), run.psns.end(), l.packet.bth.psn) != run.psns.end();
}

/// The host went back to a packet because its answer did not come, and none after that came before it went back.
bool is_unanswered_by(const plan& p, const lost_packet& l, const sending_run& run) {
  const captured_frame& start = p.frames[run.frames.front()];
  if (l.from_held || wire::traits(l.packet.bth.opcode).request || start.at <= l.at) return false;
  if (l.packet.bth.psn.before(run.psns.front())) return false;
  for (std::size_t i = run.frames.front(); i-- > 0 && p.frames[i].at >= l.at;) {
    const captured_frame& f = p.frames[i];
    if (f.connection == start.connection && !f.from_held && wire::traits(f.packet.bth.opcode).response &&
        !f.packet.bth.psn.before(run.psns.front()))
      return false;
  }
  return true;
}

}  // namespace

loss_reasons::loss_reasons(const plan& p) : plan_(p) {
  std::vector<std::vector<const lost_packet*>> lost(p.connections.size());
  for (const lost_packet& l : p.ends.lost)
    if (l.connection >= 0) lost[static_cast<std::size_t>(l.connection)].push_back(&l);
  for (std::size_t c = 0; c < lost.size(); ++c) {
    if (lost[c].empty()) continue;
    std::vector<const lost_packet*> open = lost[c];
    for (const sending_run& run : runs_of(p, static_cast<int>(c))) {
      const auto healed = [&](const lost_packet* l) {
        return is_healed_by(p, *l, run) || is_unanswered_by(p, *l, run);
      };
      const auto cause = std::find_if(open.begin(), open.end(), healed);
      if (cause == open.end()) continue;
      for (const std::size_t i : run.frames) cause_[i] = *cause;
      open.erase(std::remove_if(open.begin(), open.end(), healed), open.end());  // a loss is a reason once
    }
  }
}

std::string loss_reasons::explain(const difference& d) const {
  if (d.kind != difference_kind::missing_request || d.frame == 0 || !plan_.frames[d.frame - 1].repeated) return "";
  const auto at = cause_.find(d.frame - 1);
  if (at == cause_.end()) return "";
  const lost_packet& l = *at->second;
  return fmt::format("the real host sent it again because {} PSN {} was lost on the way {} it: frame {} of {}",
                     wire::traits(l.packet.bth.opcode).name, l.packet.bth.psn.value(), l.from_held ? "from" : "to",
                     l.frame, l.file);
}

}  // namespace rnic::replay
