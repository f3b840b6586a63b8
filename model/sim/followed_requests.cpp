// SPDX-License-Identifier: Apache-2.0
#include "model/sim/followed_requests.h"

#include <algorithm>
#include <cstring>

#include "model/sim/check.h"

namespace rnic::sim {

namespace {

constexpr std::uint32_t most_places = (1u << 18) - 1;
constexpr std::size_t marks_of_a_message = 64;

/// Both are parts of one adapter.
bool same_adapter(const char* one, const char* other) {
  const char* end = std::strrchr(one, '.');
  return end != nullptr && std::strncmp(one, other, static_cast<std::size_t>(end - one) + 1) == 0;
}

}  // namespace

followed_requests::followed_requests(const config& cfg, request_sink_if& to) : config_(cfg), to_(to) {
  RNIC_ASSERT(cfg.most != 0 && cfg.most <= most_places, "followed_requests: most must be 1 to 2^18 - 1");
  places_.emplace_back();
}

std::uint32_t followed_requests::place_of(span_id id) const {
  const std::uint32_t at = id >> place_shift & most_places;
  if (at >= places_.size() || !places_[at].open || places_[at].uses != id >> uses_shift) return 0;
  return at;
}

/// 0: there is none. Places are used in turn, so that a name comes back late.
std::uint32_t followed_requests::take_place() {
  if (free_.empty() && places_.size() <= config_.most) {
    places_.emplace_back();
    return static_cast<std::uint32_t>(places_.size() - 1);
  }
  if (free_.empty() && !closed_.empty()) {
    hand_over(closed_.front().at);
    closed_.pop_front();
  }
  if (free_.empty()) return 0;
  const std::uint32_t at = free_.front();
  free_.pop_front();
  return at;
}

span_id followed_requests::open(const request_key& key, std::uint64_t what, time_ps since) {
  if (const auto old = by_key_.find(number_of(key)); old != by_key_.end()) {  // of a queue pair that was reset
    const std::uint32_t at = old->second;
    by_key_.erase(old);
    close(at, since);
  }
  const std::uint32_t at = take_place();
  if (at == 0) {
    ++not_followed_;
    return 0;
  }
  ++opened_;
  place& p = places_[at];
  p.key = key;
  p.number = opened_;
  p.what = what;
  p.open = true;
  p.is_taken = p.polled = p.answered = p.told = false;
  p.status = 0;
  p.joined = 0;
  for (unsigned i = 0; i < 3; ++i) {
    p.began[i] = i == way_out;
    p.begins[i] = since;
    p.marks[i].clear();
  }
  if (p.marks[way_out].capacity() == 0) p.marks[way_out].reserve(marks_of_a_message);
  by_key_[number_of(key)] = at;
  return id_of(at, way_out);
}

void followed_requests::join(span_id first, span_id next) {
  const std::uint32_t one = place_of(first), other = place_of(next);
  if (one == 0 || other == 0) return;
  places_[other].joined = places_[one].joined;
  places_[one].joined = other;
}

void followed_requests::close(std::uint32_t at, time_ps when) {
  closed_.push_back({at, when});
  while (!closed_.empty() && closed_.front().when + config_.kept <= when) {
    hand_over(closed_.front().at);
    closed_.pop_front();
  }
}

void followed_requests::polled(const request_key& key, time_ps at, std::uint8_t status, const std::string& processor) {
  const auto found = by_key_.find(number_of(key));
  if (found == by_key_.end()) return;
  const std::uint32_t number = found->second;
  by_key_.erase(found);
  place& p = places_[number];
  p.polled = true;
  p.status = status;
  p.end = at;
  if (!p.began[completion]) p.begins[completion] = at;
  p.began[completion] = true;
  // Without a completion of its own it has waited for that of a later one.
  const char* stage = p.told ? "poll" : "unsignalled";
  add(p.marks[completion], {kept_name(processor), stage, wait::software, at});
  close(number, at);
}

void followed_requests::finish() {
  for (const closed& c : closed_) hand_over(c.at);
  closed_.clear();
  std::vector<std::uint32_t> rest;
  for (const auto& [key, at] : by_key_) rest.push_back(at);
  std::sort(rest.begin(), rest.end(), [this](std::uint32_t a, std::uint32_t b) {
    return std::pair(places_[a].begins[way_out], a) < std::pair(places_[b].begins[way_out], b);
  });
  by_key_.clear();
  for (const std::uint32_t at : rest) hand_over(at);
}

span_id followed_requests::taken(const request_key& key, const std::string& block, time_ps at, span_id served) {
  const auto found = by_key_.find(number_of(key));
  if (found == by_key_.end()) return 0;
  const std::uint32_t number = found->second;
  place& p = places_[number];
  auto& marks = p.marks[way_out];
  const char* const name = kept_name(block);
  if (p.is_taken) {
    const auto sent = [name](const span::mark& m) { return m.block == name && std::strcmp(m.stage, "transmit") == 0; };
    const bool again = std::any_of(marks.begin(), marks.end(), sent);
    add(marks, {name, again ? "retransmission" : "turn", again ? wait::peer : wait::arbitration, at});
  } else if (place_of(served) != number) {
    add(marks, {name, "send queue", wait::arbitration, at});
  }
  p.is_taken = true;
  return id_of(number, way_out);
}

span_id followed_requests::completed(const request_key& key, const std::string& block, time_ps at) {
  const auto found = by_key_.find(number_of(key));
  if (found == by_key_.end()) return 0;
  place& p = places_[found->second];
  if (p.began[completion]) return 0;
  p.began[completion] = true;
  p.begins[completion] = at;
  const auto known_by = [at](const std::vector<span::mark>& marks) {
    return std::find_if(marks.rbegin(), marks.rend(), [at](const span::mark& m) { return m.at <= at; });
  };
  auto last = known_by(p.marks[answer]);
  p.answered = last != p.marks[answer].rend() && same_adapter(block.c_str(), last->block);
  const auto& before = p.marks[p.answered ? answer : way_out];
  last = known_by(before);
  const bool any = last != before.rend();
  const time_ps since = any ? last->at : p.begins[way_out];
  if (since == at) return id_of(found->second, completion);
  const bool here = any && same_adapter(block.c_str(), last->block);
  p.begins[completion] = since;
  add(p.marks[completion], {kept_name(block), here ? "order" : "answer", here ? wait::arbitration : wait::peer, at});
  return id_of(found->second, completion);
}

span_id followed_requests::fork(span_id id) {
  const std::uint32_t at = place_of(id);
  if (at == 0) return 0;
  place& p = places_[at];
  if (p.began[completion]) return 0;
  p.began[answer] = true;  // of a packet that was sent again: in the place of what was answered before
  p.begins[answer] = p.marks[way_out].empty() ? p.begins[way_out] : p.marks[way_out].back().at;
  p.marks[answer].clear();
  return id_of(at, answer);
}

void followed_requests::add(std::vector<span::mark>& to, const span::mark& m) {
  auto at = to.end();
  while (at != to.begin() && (at - 1)->at > m.at) --at;
  to.insert(at, m);
}

void followed_requests::leave(span_id id, const span::mark& m) {
  std::uint32_t at = place_of(id);
  if (at == 0) {
    ++late_;
    return;
  }
  const unsigned which = id & part_mask;
  if (which == completion) places_[at].told = true;
  if (which != doorbell) return add(places_[at].marks[which], m);
  // The queue was running and has taken the request without its doorbell: that is no part of its way.
  for (; at != 0; at = places_[at].joined)
    if (!places_[at].is_taken) add(places_[at].marks[way_out], m);
}

time_ps followed_requests::end_of(span_id id) const {
  const std::uint32_t at = place_of(id);
  if (at == 0) return 0;
  const place& p = places_[at];
  const unsigned which = (id & part_mask) == doorbell ? unsigned{way_out} : id & part_mask;
  return p.marks[which].empty() ? p.begins[which] : p.marks[which].back().at;
}

bool followed_requests::so_far(span_id id, followed_request& out) const {
  const std::uint32_t at = place_of(id);
  if (at == 0) return false;
  const place& p = places_[at];
  const bool answers = (id & part_mask) == answer;
  const auto& out_marks = p.marks[way_out];
  const time_ps cut = answers ? p.begins[answer] : ~time_ps{0};
  const auto behind =
      std::find_if(out_marks.begin(), out_marks.end(), [cut](const span::mark& m) { return m.at > cut; });
  out.key = p.key;
  out.number = p.number;
  out.what = p.what;
  out.path.start = p.begins[way_out];
  out.path.marks.assign(out_marks.begin(), behind);
  if (answers) out.path.marks.insert(out.path.marks.end(), p.marks[answer].begin(), p.marks[answer].end());
  return true;
}

void followed_requests::move_up_to(const std::vector<span::mark>& from, time_ps cut, followed_request::way& path,
                                   followed_request::way& beside) {
  const auto behind = std::find_if(from.begin(), from.end(), [cut](const span::mark& m) { return m.at > cut; });
  path.marks.insert(path.marks.end(), from.begin(), behind);
  beside.start = cut;
  beside.marks.assign(behind, from.end());
}

// An answer that did not come to the requester (lost, or overtaken by a later one) is beside the way.
void followed_requests::assemble(const place& p) {
  const bool answers = p.began[answer] && (p.answered || !p.began[completion]);
  const time_ps end = p.began[completion] ? p.begins[completion] : ~time_ps{0};
  out_.path.start = p.begins[way_out];
  out_.path.marks.clear();
  move_up_to(p.marks[way_out], answers ? std::min(p.begins[answer], end) : end, out_.path, out_.beside);
  out_.beside_answer = {p.begins[answer], {}};
  if (answers)
    move_up_to(p.marks[answer], end, out_.path, out_.beside_answer);
  else if (p.began[answer])
    out_.beside_answer.marks = p.marks[answer];
  out_.path.marks.insert(out_.path.marks.end(), p.marks[completion].begin(), p.marks[completion].end());
}

time_ps followed_requests::earliest() const {
  time_ps first = ~time_ps{0};
  for (const place& p : places_)
    if (p.open) first = std::min(first, p.begins[way_out]);
  return first;
}

void followed_requests::hand_over(std::uint32_t at) {
  place& p = places_[at];
  out_.key = p.key;
  out_.number = p.number;
  out_.what = p.what;
  out_.polled = p.polled;
  out_.status = p.status;
  assemble(p);
  to_.take(out_);
  p.open = false;
  p.uses = (p.uses + 1) & 0xfff;
  free_.push_back(at);
}

}  // namespace rnic::sim
