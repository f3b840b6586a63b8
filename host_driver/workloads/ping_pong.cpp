// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/ping_pong.h"

#include <algorithm>

namespace rnic::workloads {

namespace {

constexpr std::uint64_t receives_ahead = 64;  // posted before the first message, as perftest does
constexpr int ping_pong_entries = 256;        // of completion queues, at most receives_ahead of which are in use
constexpr unsigned vain = 10;                 // times the longest round trip before it: so late nothing comes
constexpr sim::time_ps patience = 10'000 * sim::ps_per_us;  // for a message that may have been lost for good

/// The last byte of message `n`: another one than that of the message before, and than that of empty memory.
std::uint8_t last_byte(std::uint64_t n) { return static_cast<std::uint8_t>(n % 255 + 1); }

}  // namespace

/// Of a queue pair at one host.
struct ping_pong::end {
  hosts::endpoint* at = nullptr;
  end* peer = nullptr;
  unsigned to = 0;  // the other host
  std::uint32_t nth = 0;
  std::uint64_t messages = 0;  // that come; ~0: any number
  link_end link;
  hosts::buffer out, in;
};

struct ping_pong::lane {
  std::size_t pair = 0;      // of the results
  end ends[2];               // that sends first, that answers
  sim::time_ps longest = 0;  // round trip
};

ping_pong::ping_pong(workload& of, unsigned host, unsigned thread, std::uint32_t first_lane)
    : of_(of),
      host_(host),
      to_send_(of.share_of_messages(thread)),
      verb_(*of.config_.verbs.front().what),
      bytes_(of.config_.sizes.largest()),
      headroom_(of.config_.connection.type == IBV_QPT_UD ? datagram_headroom : 0) {
  sends_.host = host;
  make_lanes(first_lane);
  const bool forever = to_send_ == ~std::uint64_t{0};
  for (std::size_t i = 0; i < lanes_.size(); ++i)  // they take turns
    for (end& e : lanes_[i]->ends)
      e.messages = forever ? to_send_ : to_send_ / lanes_.size() + (i < to_send_ % lanes_.size() ? 1 : 0);
}

ping_pong::~ping_pong() = default;

void ping_pong::make_lanes(std::uint32_t first_lane) {
  for (const unsigned to : of_.config_.to) {
    if (to == host_) continue;
    answers_.emplace_back();
    answers_.back().host = to;
    for (unsigned i = 0; i < of_.config_.qps; ++i) {
      lanes_.push_back(std::make_unique<lane>());
      lane& l = *lanes_.back();
      l.pair = of_.pair_of(host_, to);
      for (unsigned k = 0; k < 2; ++k) {
        l.ends[k].nth = first_lane + static_cast<std::uint32_t>(lanes_.size() - 1);
        l.ends[k].peer = &l.ends[1 - k];
        l.ends[k].to = k == 0 ? to : host_;
      }
      sends_.ends.push_back(&l.ends[0]);
      answers_.back().ends.push_back(&l.ends[1]);
    }
  }
}

/// Where the host answers; nullptr: it does not.
ping_pong::side* ping_pong::side_of(unsigned host) {
  const auto at = std::find_if(answers_.begin(), answers_.end(), [host](const side& s) { return s.host == host; });
  return at != answers_.end() ? &*at : nullptr;
}

void ping_pong::create(unsigned host) {
  for (side* s : {host == host_ ? &sends_ : nullptr, side_of(host)}) {
    if (s == nullptr) continue;
    hosts::endpoint& e = of_.system_.end(host);
    s->sent = new_cq(e, ping_pong_entries);
    s->received = new_cq(e, std::max<std::uint64_t>(ping_pong_entries, s->ends.size() * receives_ahead));
    for (end* each : s->ends) create(*s, *each);
  }
}

void ping_pong::create(side& s, end& e) {
  e.at = &of_.at(s.host, e.nth);
  const std::size_t room = std::max(bytes_, 64u);
  e.out = hosts::make_buffer(*e.at, room);
  e.in = hosts::make_buffer(*e.at, headroom_ + room);
  e.link.create(*e.at, of_.config_.connection, *s.sent, *s.received);
  if (of_.onlooker_ != nullptr) of_.onlooker_->sends(s.host, e.link.sender_number(), of_.config_.name);
}

void ping_pong::connect(unsigned host) {
  for (const auto& l : lanes_)
    for (end& e : l->ends) {
      if (e.peer->to != host) continue;
      e.link.connect(e.peer->link, e.nth, e.nth);
      for (std::uint64_t n = 0; verb_.receives && n < std::min(receives_ahead, e.messages); ++n) post_receive(e);
    }
}

void ping_pong::post_receive(const end& e) const {
  e.link.post_receive(e.in.address(headroom_), bytes_, e.in.region->lkey);
}

/// Behind message `n` of this queue pair, unless those that are there are enough for the rest: perftest's rule, by
/// which the last messages are answered without this work.
void ping_pong::receive_another(const end& e, std::uint64_t n) const {
  if (verb_.receives && n + receives_ahead <= e.messages) post_receive(e);
}

/// Where the processor looks for a message that takes no receive.
std::uint64_t ping_pong::last_byte_of(const end& e) const { return e.in.memory.bus_address + headroom_ + bytes_ - 1; }

void ping_pong::post(end& e, std::uint64_t n) {
  hosts::message_segments segments(e.out.address(), bytes_, e.out.region->lkey);
  if (bytes_ != 0) e.out.at()[bytes_ - 1] = last_byte(n);
  ibv_send_wr wr{};
  wr.sg_list = segments.list.data();
  wr.num_sge = segments.count;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (bytes_ <= of_.config_.connection.inline_bytes) wr.send_flags |= IBV_SEND_INLINE;
  make_message(wr, verb_, e.peer->in.address(headroom_), e.peer->in.region->rkey, 0);
  e.link.aim(wr);
  e.link.post_send(wr);
}

ping_pong::outcome ping_pong::completed(const side& s, host_driver::completion_queue& cq, sim::time_ps timeout,
                                        ibv_wc& wc) {
  const int n = of_.system_.end(s.host).device->wait_cq(&cq, 1, &wc, timeout);
  hosts::require(n, "poll_cq");
  if (n == 0) return outcome::nothing;
  if (wc.status == IBV_WC_SUCCESS) return outcome::here;
  why_ = hosts::to_string(wc.status);
  return outcome::failed;
}

/// Message `n` of the other end. `timeout` 0: none.
ping_pong::outcome ping_pong::await(side& s, end& e, std::uint64_t n, sim::time_ps timeout) {
  std::uint8_t* const in = e.in.at(headroom_);
  if (verb_.receives) {
    ibv_wc wc{};
    const outcome o = completed(s, *s.received, timeout, wc);
    if (o == outcome::here) e.link.take_out(wc, in);
    return o;
  }
  const volatile std::uint8_t* const last = in + bytes_ - 1;
  while (*last != last_byte(n))
    if (!e.at->bus->wait_for_write(last_byte_of(e), 1, timeout)) return outcome::nothing;
  e.at->bus->spend_ps(e.at->device->settings().poll_ns * sim::ps_per_ns);
  return outcome::here;
}

void ping_pong::send(const workload_times& t) {
  const workload_config& c = of_.config_;
  times_ = t;
  const sim::time_ps begin = std::min(t.begin + c.start, t.end);
  const sim::time_ps until = c.end == 0 ? t.end : std::min(t.begin + c.end, t.end);
  of_.system_.wait_until(begin, host_);
  std::uint64_t sent = 0;
  for (std::uint64_t n = 1; sent < to_send_; ++n)  // of each queue pair
    for (const auto& l : lanes_) {
      if (sent++ >= to_send_ || of_.system_.now_ps() >= until || !round_trip(*l, n)) return;
    }
}

/// False: it was the last one, since it has failed, or is unfinished or lost.
bool ping_pong::round_trip(lane& l, std::uint64_t n) {
  workload_result& r = of_.results_[l.pair];
  end& e = l.ends[0];
  const sim::time_ps start = of_.system_.now_ps();
  r.first_post = std::min(r.first_post, start);
  ++r.offered;
  post(e, n);
  const auto left = [&]() -> sim::time_ps {
    const sim::time_ps now = of_.system_.now_ps();
    const sim::time_ps rest = times_.give_up > now ? times_.give_up - now : 1;
    return of_.unreliable() ? std::min(rest, patience) : rest;
  };
  ibv_wc wc{};
  outcome o = completed(sends_, *sends_.sent, left(), wc);
  if (o == outcome::here) o = await(sends_, e, n, left());
  const sim::time_ps now = of_.system_.now_ps();
  if (o == outcome::here) {
    l.longest = std::max(l.longest, now - start);
    keep(l, start, now);
    receive_another(e, n);
    return true;
  }
  // A run that ends before the patience does may have waited for nothing, too.
  const bool in_vain = of_.unreliable() && l.longest != 0 && now - start >= vain * l.longest;
  if (o == outcome::failed)
    of_.failed(host_, e.to, why_);
  else if (now < times_.give_up || in_vain)
    of_.failed(host_, e.to, "message " + std::to_string(n) + " or its answer was lost, and nobody sends again");
  if (o == outcome::failed || now >= times_.give_up || !of_.unreliable()) ++r.unfinished;
  return false;
}

void ping_pong::keep(lane& l, sim::time_ps start, sim::time_ps now) {
  workload_result& r = of_.results_[l.pair];
  ++r.received;
  ++of_.completed_;
  r.last_completion = now;
  if (!times_.is_measured(now, of_.config_.end)) return;
  ++r.completed;
  ++r.received_in_time;
  ++r.completed_in_time;
  r.completed_bytes += bytes_;
  r.received_bytes += bytes_;
  r.latencies.add((now - start) / 2);
}

void ping_pong::answer(unsigned host) {
  side& s = *side_of(host);
  for (std::uint64_t n = 1;; ++n)
    for (end* e : s.ends) {
      outcome o = outcome::nothing;
      while (o == outcome::nothing) {
        if (s.over) return;
        o = await(s, *e, n, 0);
      }
      if (o == outcome::failed) return;  // its queue pair has ended, as the sender's has or will
      receive_another(*e, n);
      post(*e, n);
      ibv_wc wc{};
      if (completed(s, *s.sent, 0, wc) != outcome::here) return;
    }
}

void ping_pong::sender_has_ended(unsigned host) {
  side& s = *side_of(host);
  s.over = true;
  if (verb_.receives) return of_.system_.end(host).device->end_wait(s.received);
  for (end* e : s.ends) e->at->bus->end_wait(last_byte_of(*e));
}

}  // namespace rnic::workloads
