// SPDX-License-Identifier: Apache-2.0
#include "model/transport/requester/scatter.h"

#include <algorithm>
#include <utility>

#include "model/sim/check.h"

namespace rnic::transport {

scatter::scatter(std::string name, sim::clock_domain& domain, unsigned jobs, scatter_lists& lists,
                 sim::span_recorder& spans, sim::statistics& stats)
    : clocked_block(name, domain), lists_(lists), spans_(spans), jobs_(jobs) {
  lists_.bind_reader(*this);
  const std::pair<const char*, const std::uint64_t*> all[] = {
      {"packets", &packets_}, {"bytes", &bytes_},       {"writes", &writes_},
      {"failed", &failed_},   {"given_up", &given_up_}, {"translation_misses", &translation_misses_}};
  for (const auto& [n, counter] : all) stats.add(this->name() + "." + n, *counter);
}

void scatter::tick() {
  take_memory();
  report();
  take_translation();
  write();
  accept();
  ask();
  if (revocation_ != revocation::none || keys.revoke.can_pop()) revoke();
  ask_.waits_for(ask_held_up_by());
  write_.waits_for(write_held_up_by());
}

void scatter::take_memory() {
  if (!dma.response.can_pop()) return;
  const pcie::dma_response d = dma.response.pop();
  if (d.tag == flush_tag) {
    revocation_ = revocation::done;
    return;
  }
  work& w = job(static_cast<std::uint32_t>(d.tag));
  if (d.status != pcie::dma_status::ok) w.failed = true;
  finish(w);
}

void scatter::finish(work& w) {
  w.finished = true;
  w.job.frame.reset();
}

void scatter::report() {
  if (jobs_.empty() || !jobs_.front().finished || !done_out.claim()) return;
  const work& w = jobs_.front();
  if (w.failed) ++failed_;
  done_out.push({w.job.qpn, w.job.message, w.job.generation, w.job.list, w.failed});
  jobs_.drop();
  ++first_job_;
  if (!jobs_.empty() && jobs_.front().finished) wake_next();
}

// Answers come in any order.
void scatter::take_translation() {
  if (!translate.response.can_pop()) return;
  const icm::translate_response& r = translate.response.front();
  piece& p = pieces_[static_cast<std::uint32_t>(r.tag) - first_piece_];
  p.answer = r;
  p.answered = true;
  if (r.missed) ++translation_misses_;
  translate.response.drop();
}

// In the order of the packets: what is reported as complete is in memory.
void scatter::write() {
  if (pieces_.empty() || !pieces_.front().answered) return;
  piece& p = pieces_.front();
  work& w = job(p.job);
  if (p.answer.status != icm::translate_status::ok) w.failed = true;
  const unsigned writes = w.failed ? 0 : p.answer.count;
  if (p.sent < writes && !dma.request.claim()) return;
  write_.start(1);
  if (p.sent < writes) {
    const auto& s = p.answer.segments[p.sent];
    pcie::dma_request d;
    d.op = pcie::dma_request::kind::write;
    d.notify = p.last && p.sent + 1 == writes;
    d.function = w.job.function;
    d.address = s.address;
    d.length = s.length;
    d.tag = p.job;
    d.source = w.job.frame->data() + w.job.frame->packet.payload_offset + p.place;
    d.keep = w.job.frame;
    if (p.last) d.span = w.job.frame->span;
    if (d.notify) {
      w.notified = true;
      const auto why = p.answer.missed ? sim::wait::translation_miss : sim::wait::none;
      spans_.leave(w.job.frame->span, name(), "scatter", now_ps(), why);
    }
    dma.request.push(std::move(d));
    p.place += s.length;
    ++p.sent;
    ++writes_;
    bytes_ += s.length;
    if (p.sent != writes) return wake_next();
  }
  const bool ends = p.last && !w.notified;
  if (ends) finish(w);
  pieces_.drop();
  ++first_piece_;
  if (ends || (!pieces_.empty() && pieces_.front().answered)) wake_next();
}

const char* scatter::write_held_up_by() const {
  if (pieces_.empty()) return nullptr;
  const piece& p = pieces_.front();
  if (!p.answered) return "translation";
  const bool fails = job(p.job).failed || p.answer.status != icm::translate_status::ok;
  return !fails && p.sent < p.answer.count && !dma.request.can_push() ? "dma" : nullptr;
}

void scatter::accept() {
  if (jobs_.full() || !job_in.can_pop()) return;
  work w;
  w.job = job_in.pop();
  jobs_.push(std::move(w));
  ++packets_;
}

// A step of the oldest job that is not asked for to its end: the address of a piece, or a segment passed over.
void scatter::ask() {
  if (asking_ - first_job_ == jobs_.size()) return;
  work& w = job(asking_);
  scatter_list& list = lists_.read(w.job.list);
  if (w.asked == 0 && list.orphan_since < now()) {  // nobody waits for its data
    ++given_up_;
    ++asking_;
    finish(w);
    wake_next();
  } else if (list.at != w.job.offset + w.asked) {
    // What was answered before the READ was asked for again from here on, by a queue pair that had stopped meanwhile.
    const std::uint32_t rest = list.segments[list.segment].length - list.segment_offset;
    const std::uint32_t skipped = std::min(rest, w.job.offset + w.asked - list.at);
    list.at += skipped;
    list.segment_offset += skipped;
    if (skipped == rest) {
      ++list.segment;
      list.segment_offset = 0;
    }
  } else {
    if (pieces_.full() || !translate.request.claim()) return;
    ask_piece(list);
  }
  ask_.start(1);
  if (asking_ - first_job_ != jobs_.size()) wake_next();
}

const char* scatter::ask_held_up_by() const {
  if (asking_ - first_job_ == jobs_.size()) return nullptr;
  if (pieces_.full()) return pieces_.front().answered ? "dma" : "translation";
  return translate.request.can_push() ? nullptr : "translation";
}

void scatter::ask_piece(scatter_list& list) {
  work& w = job(asking_);
  RNIC_ASSERT(list.segment < list.count, name() + ": a response is longer than its scatter list");
  const wqe_segment& s = list.segments[list.segment];
  const std::uint32_t length = w.job.frame->packet.payload_length;
  const std::uint32_t n = std::min(length - w.asked, s.length - list.segment_offset);
  icm::translate_request t;
  if (w.job.reserved_key && s.lkey == w.job.reserved_lkey) t.what = icm::translate_request::kind::reserved_key;
  t.access = icm::access::local_write;
  t.key = s.lkey;
  t.pd = w.job.pd;
  t.qpn = w.job.qpn;
  t.va = s.address + list.segment_offset;
  t.length = n;
  t.tag = first_piece_ + static_cast<std::uint32_t>(pieces_.size());
  translate.request.push(t);
  piece p;
  p.job = asking_;
  p.place = w.asked;
  w.asked += n;
  p.last = w.asked == length;
  pieces_.push(p);
  list.at += n;
  list.segment_offset += n;
  if (list.segment_offset == s.length) {
    ++list.segment;
    list.segment_offset = 0;
  }
  if (w.asked == length) ++asking_;
}

// What was begun under the key is written; what was not will be refused by translation.
void scatter::revoke() {
  if (revocation_ == revocation::none) {
    revoked_key_ = keys.revoke.pop().key;
    const bool begun = asking_ - first_job_ != jobs_.size() && job(asking_).asked != 0;
    drain_to_ = asking_ + (begun ? 1 : 0);
    revocation_ = revocation::draining;
  }
  if (revocation_ == revocation::draining) {
    if (static_cast<std::int32_t>(drain_to_ - first_job_) > 0) return;  // the report of the last one is a tick
    if (!dma.request.claim()) return;
    pcie::dma_request flush;  // behind all writes before it
    flush.op = pcie::dma_request::kind::write;
    flush.notify = true;
    flush.tag = flush_tag;
    dma.request.push(std::move(flush));
    revocation_ = revocation::flushing;
  }
  if (revocation_ != revocation::done || !keys.revoked.claim()) return;
  keys.revoked.push({revoked_key_});
  revocation_ = revocation::none;
  if (keys.revoke.can_pop()) wake_next();
}

}  // namespace rnic::transport
