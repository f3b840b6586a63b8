// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/single_messages.h"

#include <algorithm>

#include "testbenches/bench/trace/stages_text.h"

namespace rnic::bench {

namespace {

// Messages behind it by which one's acknowledgement is through. Each has three spans at most: far fewer than there are.
constexpr std::size_t messages_kept = 8;
constexpr unsigned spans_of_a_message = 4;

}  // namespace

single_messages::single_messages(const watched_system& system, const config& which, message_sink_if* to)
    : system_(system), which_(which), to_(to) {
  for (const watched_system::host& h : system_.hosts)
    adapters_.push_back(system_.spans->adapter_of(h.name + ".adapter.requester"));
  const auto flows = static_cast<std::uint32_t>(which_.flows.size());
  for (unsigned h = 0; to_ != nullptr && h < system_.hosts.size(); ++h)
    for (std::uint32_t f = 0; f < flows; ++f) to_->add_flow(h * flows + f, which_.flows[f], h);
}

void single_messages::begin(sim::time_ps now) {
  active_ = true;
  from_ = now + which_.from;
  until_ = which_.until > ~sim::time_ps{0} - now ? ~sim::time_ps{0} : now + which_.until;
}

void single_messages::open(unsigned host, unsigned flow, sim::time_ps start, sim::span_id span) {
  message m;
  m.host = host;
  m.span = span;
  m.start = start;
  m.note.flow = static_cast<std::uint16_t>(host * which_.flows.size() + flow);
  m.chosen = active_ && start >= from_ && start < until_;
  if (m.chosen) m.number = ++opened_;
  messages_.push_back(m);
  if (messages_.size() > messages_kept) {
    hand_over(messages_.front(), messages_[1].start);
    messages_.pop_front();
  }
  if (to_ != nullptr && m.chosen) to_->under_way(host, 1, start);
}

void single_messages::posted(unsigned host, const ibv_qp& qp, const host_driver::span_source_if::posted& requests) {
  const auto mine = std::find_if(messages_.rbegin(), messages_.rend(),
                                 [host](const message& m) { return m.host == host && m.end == 0; });
  if (mine == messages_.rend()) return;
  mine->key = {adapters_[host], qp.qp_num, static_cast<std::uint16_t>(requests.index)};
  mine->note = message_note::of(*requests.first, mine->note.flow);
}

void single_messages::arrived(unsigned host, sim::time_ps at) {
  const auto mine =
      std::find_if(messages_.rbegin(), messages_.rend(), [host](const message& m) { return m.host == host; });
  if (mine == messages_.rend() || mine->end != 0) return;
  mine->end = at;
  if (to_ != nullptr && mine->chosen) to_->under_way(host, 0, at);
}

void single_messages::finish() {
  for (const message& m : messages_) hand_over(m, 0);
  messages_.clear();
  active_ = false;
}

// ---------------------------------------------------------------- ways

sim::followed_request::way single_messages::way_of(const sim::span& s) {
  sim::followed_request::way w{s.start(), {}};
  for (unsigned i = 0; i < s.count(); ++i) w.marks.push_back(s[i]);
  return w;
}

/// What the acknowledgement has left since it split off: its span began with the marks of the message's.
void single_messages::fork_of(const message& m) {
  out_.beside_answer.marks.clear();
  sim::span_id id = m.span;
  for (unsigned i = 1; i < spans_of_a_message; ++i) {
    id = system_.spans->after(id);
    const sim::span &fork = (*system_.spans)[id], &own = (*system_.spans)[m.span];
    if (id == m.span || fork.start() != m.start) continue;
    unsigned same = 0;
    const auto equal = [](const sim::span::mark& a, const sim::span::mark& b) {
      return a.at == b.at && a.block == b.block && a.stage == b.stage;
    };
    while (same < fork.count() && same < own.count() && equal(fork[same], own[same])) ++same;
    out_.beside_answer.start = same == 0 ? m.start : fork[same - 1].at;
    for (unsigned k = same; k < fork.count(); ++k) out_.beside_answer.marks.push_back(fork[k]);
    return;
  }
}

void single_messages::hand_over(const message& m, sim::time_ps nothing_before) {
  if (to_ == nullptr || !m.chosen) return;
  out_.key = m.key;
  out_.number = m.number;
  out_.what = m.note.packed();
  out_.polled = m.end != 0;
  out_.path = way_of((*system_.spans)[m.span]);
  const sim::time_ps end = m.end != 0 ? m.end : ~sim::time_ps{0};
  const auto behind = std::find_if(out_.path.marks.begin(), out_.path.marks.end(),
                                   [end](const sim::span::mark& mark) { return mark.at > end; });
  out_.beside.start = end;
  out_.beside.marks.assign(behind, out_.path.marks.end());
  out_.path.marks.erase(behind, out_.path.marks.end());
  fork_of(m);
  to_->take(out_, nothing_before);
}

// ---------------------------------------------------------------- comments

void single_messages::describe(const payload::frame& f, sim::time_ps first_bit, sim::time_ps cable, std::string& text) {
  const sim::span_id id = f.span != 0 ? f.span : f.part_of;
  text.clear();
  if (id == 0) return;
  const sim::span& s = (*system_.spans)[id];
  const auto of = std::find_if(messages_.rbegin(), messages_.rend(),
                               [&s](const message& m) { return m.chosen && m.start == s.start(); });
  if (of == messages_.rend()) return;
  put_message({of->number, of->note.packed(), which_.flows[of->note.flow % which_.flows.size()],
               system_.hosts[of->host].name, of->key.qpn, of->key.index},
              of->start, first_bit + cable, text);
  if (f.span != 0) put_stages(way_of(s), first_bit, cable, text);
}

}  // namespace rnic::bench
