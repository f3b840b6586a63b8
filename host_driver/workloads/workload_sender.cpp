// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/workload_sender.h"

#include <algorithm>
#include <array>

namespace rnic::workloads {

namespace {

constexpr unsigned longest_batch = 32;  // requests of a call of post_send

/// Of independent sequences (SplitMix64: Steele et al., OOPSLA 2014).
std::uint64_t mixed(std::uint64_t seed, std::uint64_t nth) {
  std::uint64_t z = seed + (nth + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

workload_sender::workload_sender(workload& of, unsigned host, unsigned thread, std::uint32_t first_lane)
    : of_(of), host_(host), to_send_(of.share_of_messages(thread)), random_(mixed(of.config_.seed, 2 * first_lane)) {
  const workload_config& c = config();
  for (const unsigned to : c.to) {
    if (to == host) continue;
    const std::size_t pair = of.pair_of(host, to);
    for (unsigned i = 0; i < c.qps; ++i) {
      workload_lane l;
      l.to = to;
      l.pair = pair;
      l.nth = first_lane + static_cast<std::uint32_t>(lanes_.size());
      l.window.resize(c.depth);
      lanes_.push_back(std::move(l));
    }
  }
  ready_.resize((lanes_.size() + 63) / 64);
  unsigned sum = 0;
  for (const workload_config::verb_part& v : c.verbs) weights_.push_back(sum += v.weight);
}

void workload_sender::create() {
  hosts::endpoint& e = of_.system_.end(host_);
  cq_ = new_cq(e, std::uint64_t{lanes_.size()} * config().depth + poll_batch);
  unused_ = new_cq(e, poll_batch);
  for (workload_lane& l : lanes_) {
    l.ends[0].create(of_.at(host_, l.nth), config().connection, *cq_, *unused_);
    if (of_.onlooker_ != nullptr) of_.onlooker_->sends(host_, l.ends[0].sender_number(), config().name);
  }
}

void workload_sender::connect() {
  for (workload_lane& l : lanes_) l.ends[0].connect(l.ends[1], l.nth, l.nth);
}

/// Size and verb of the next message.
workload_lane::message workload_sender::draw(sim::time_ps since) {
  const workload_config& c = config();
  std::size_t v = 0;
  if (c.verbs.size() > 1)
    v = static_cast<std::size_t>(std::upper_bound(weights_.begin(), weights_.end(), random_() % weights_.back()) -
                                 weights_.begin());
  const verb* const what = c.verbs[v].what;
  return {since, what->atomic ? hosts::atomic_bytes : c.sizes.next(random_), what, true};
}

/// The lane of the next message; of those that may post where `with_room`, and there is one.
std::uint32_t workload_sender::choose(bool with_room) {
  const auto lanes = static_cast<std::uint32_t>(lanes_.size());
  std::uint32_t i = config().random_queue_pairs ? static_cast<std::uint32_t>(random_() % lanes) : turn_;
  while (with_room && (ready_[i / 64] >> (i % 64)) == 0)
    i = (i / 64 + 1) % static_cast<std::uint32_t>(ready_.size()) * 64;
  if (with_room) i += static_cast<std::uint32_t>(__builtin_ctzll(ready_[i / 64] >> (i % 64)));
  turn_ = (i + 1) % lanes;
  return i;
}

/// Those up to `until`, if they come before `end`.
void workload_sender::take_arrivals(sim::time_ps until, sim::time_ps end) {
  for (; begun_ < to_send_ && arrivals_->next() <= until && arrivals_->next() < end; arrivals_->pop()) {
    const std::uint32_t i = choose(false);
    lanes_[i].waiting.push_back(draw(arrivals_->next()));
    ++of_.results_[lanes_[i].pair].offered;
    ++begun_;
    most_waiting_ = std::max(most_waiting_, ++waiting_);
    note_room(i);
  }
}

/// Messages of the next call of post_send: a whole batch, or what is left to send; 0: no room.
std::uint64_t workload_sender::postable(const workload_lane& l) const {
  const std::uint64_t room = config().depth - (l.posted - l.completed);
  const std::uint64_t batch = std::min(config().batch, longest_batch);
  if (config().open) return std::min({room, batch, std::uint64_t{l.waiting.size()}});
  const std::uint64_t rest = to_send_ - begun_;
  return room < batch && rest >= batch ? 0 : std::min({room, batch, rest});
}

void workload_sender::note_room(std::uint32_t index) {
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  ready_[index / 64] = postable(lanes_[index]) != 0 ? ready_[index / 64] | bit : ready_[index / 64] & ~bit;
}

void workload_sender::post_all(sim::time_ps end) {
  const auto any = [this] {
    return std::any_of(ready_.begin(), ready_.end(), [](std::uint64_t mask) { return mask != 0; });
  };
  if (!config().open) {
    while (any() && of_.system_.now_ps() < end) post_to(choose(true));
    return;
  }
  while (any())
    for (std::uint32_t word = 0; word < ready_.size(); ++word)
      for (std::uint64_t rest = ready_[word]; rest != 0; rest &= rest - 1)
        post_to(word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(rest)));
}

/// What there is room for, a batch at most; perhaps nothing, where other lanes have taken what was left to send.
void workload_sender::post_to(std::uint32_t index) {
  if (const std::uint64_t count = postable(lanes_[index])) post(index, count);
  note_room(index);
}

void workload_sender::post(std::uint32_t index, std::uint64_t count) {
  workload_lane& l = lanes_[index];
  const workload_config& c = config();
  workload_result& r = of_.results_[l.pair];
  // Masked atomics are no part of workloads; all requests are plain ones.
  std::array<ibv_send_wr, longest_batch> list;
  std::array<hosts::message_segments, longest_batch> segments;
  const sim::time_ps now = of_.system_.now_ps();
  for (std::uint64_t n = 0; n < count; ++n) {
    workload_lane::message m;
    if (c.open) {
      m = l.waiting.front();
      if (of_.onlooker_ != nullptr) of_.onlooker_->waited(host_, l.ends[0].sender_number(), m.since);
      l.waiting.pop_front();
      --waiting_;
    } else {
      m = draw(now);
      ++begun_;
      ++r.offered;
      // At the end of what is to send each one, so that none is left without.
      const bool last_ones = to_send_ - begun_ < std::uint64_t{c.signal_every} * lanes_.size();
      m.signaled = last_ones || (l.posted + n + 1) % c.signal_every == 0;
    }
    const auto here = of_.memory_[host_]->next(m.bytes, place_turn_[0], random_);
    const auto there = of_.memory_[l.to]->next(m.bytes, place_turn_[1], random_);
    segments[n] = hosts::message_segments(here.address, m.bytes, here.lkey);
    ibv_send_wr& wr = list[n];
    wr = {};  // those of the batch alone: all of them take 4 KiB
    wr.wr_id = index;
    wr.sg_list = segments[n].list.data();
    wr.num_sge = segments[n].count;
    if (m.signaled) wr.send_flags |= IBV_SEND_SIGNALED;
    if (m.bytes <= c.connection.inline_bytes && !m.what->reads) wr.send_flags |= IBV_SEND_INLINE;
    wr.next = n + 1 < count ? &list[n + 1] : nullptr;
    make_message(wr, *m.what, there.address, there.rkey, l.operations);
    if (m.what->atomic) ++l.operations;
    l.ends[0].aim(wr);
    l.window[(l.posted + n) % c.depth] = m;
  }
  r.first_post = std::min(r.first_post, now);
  l.ends[0].post_send(list[0]);
  l.posted += count;
  under_way_ += count;
}

/// The oldest one that is under way, and those before it that have no completion.
void workload_sender::complete(workload_lane& l) {
  const sim::time_ps now = of_.system_.now_ps();
  workload_result& r = of_.results_[l.pair];
  const auto is_measured = [this](sim::time_ps at) { return times_.is_measured(at, config().end); };
  for (bool last = false; !last && l.completed < l.posted;) {
    const workload_lane::message& m = l.window[l.completed % config().depth];
    if (is_measured(now)) {
      ++r.completed_in_time;
      r.completed_bytes += m.bytes;
    }
    if (is_measured(config().open ? m.since : now)) {
      ++r.completed;
      if (m.signaled) r.latencies.add(now - m.since);
    }
    last = m.signaled;
    ++l.completed;
    --under_way_;
    ++of_.completed_;
  }
  r.last_completion = now;
}

/// False: the workload has failed.
bool workload_sender::take_completions(sim::time_ps timeout) {
  std::array<ibv_wc, poll_batch> wc{};
  const int n = of_.system_.end(host_).device->wait_cq(cq_, poll_batch, wc.data(), std::max<sim::time_ps>(timeout, 1));
  hosts::require(n, "poll_cq");
  for (int i = 0; i < n; ++i) {
    const ibv_wc& c = wc[static_cast<std::size_t>(i)];
    workload_lane& l = lanes_[c.wr_id];
    if (c.status != IBV_WC_SUCCESS) {
      of_.failed(host_, l.to, hosts::to_string(c.status));
      return false;
    }
    complete(l);
    note_room(static_cast<std::uint32_t>(c.wr_id));
  }
  return true;
}

bool workload_sender::is_done(sim::time_ps now, sim::time_ps end) const {
  const bool no_more = begun_ >= to_send_ || now >= end || (arrivals_ && arrivals_->next() >= end);
  return no_more && under_way_ == 0 && waiting_ == 0;
}

void workload_sender::run(const workload_times& t) {
  const workload_config& c = config();
  times_ = t;
  const sim::time_ps begin = std::min(t.begin + c.start, t.end);
  const sim::time_ps end = c.end == 0 ? t.end : std::min(t.begin + c.end, t.end);
  of_.system_.wait_until(begin, host_);
  if (c.open) {
    arrival_config each = *c.open;
    each.gap_ps *= c.threads;
    arrivals_.emplace(each, begin, mixed(c.seed, 2 * std::uint64_t{lanes_.front().nth} + 1));
  } else {
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) note_room(i);
  }
  while (true) {
    if (c.open) take_arrivals(of_.system_.now_ps(), end);
    post_all(end);
    const sim::time_ps now = of_.system_.now_ps();
    if (is_done(now, end) || now >= t.give_up) break;
    // Until the next arrival, or the end of what a closed loop posts.
    sim::time_ps next = t.give_up;
    if (c.open && begun_ < to_send_ && arrivals_->next() < end) next = std::min(next, arrivals_->next());
    if (!c.open && now < end) next = std::min(next, end);
    if (next > now && !take_completions(next - now)) break;
  }
}

void workload_sender::settle() {
  for (const workload_lane& l : lanes_) of_.results_[l.pair].unfinished += l.posted - l.completed + l.waiting.size();
}

}  // namespace rnic::workloads
