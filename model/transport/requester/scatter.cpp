// SPDX-License-Identifier: Apache-2.0
// READ data on its way from response packets to host memory, in order.
#include <algorithm>
#include <utility>

#include "model/sim/check.h"
#include "model/transport/requester/requester.h"

namespace rnic::transport {

// A response packet with payload that begins at byte `offset` of its message.
void requester::open_job(context& c, message& m, std::uint32_t index, payload::frame_ptr f, std::uint32_t offset) {
  scatter_job& j = jobs_[(job_head_ + job_count_++) % jobs_.size()];
  j.qpn = c.qpn;
  j.pd = c.pd;
  j.function = c.function;
  j.message_index = index;
  j.generation = m.generation;
  j.scatter = m.scatter;
  j.length = f->packet.payload_length;
  j.done = 0;
  j.reserved_key = (c.flags & icm::requester_flag_reserved_lkey) != 0;
  j.failed = j.waits_write = false;
  scatter_list& list = scatters_[m.scatter];
  ++list.users;
  j.segment = 0;
  while (j.segment < list.count && offset >= list.segments[j.segment].length)
    offset -= list.segments[j.segment++].length;
  j.segment_offset = offset;
  j.frame = std::move(f);
  ++m.writes;
  ++qps_[c.qpn].jobs;
}

// Asks for the addresses of the next pieces, job by job.
void requester::ask_scatter() {
  while (job_asking_ < job_count_) {
    const unsigned index = (job_head_ + job_asking_) % static_cast<unsigned>(jobs_.size());
    scatter_job& j = jobs_[index];
    const bool gone = messages_[j.message_index].generation != j.generation;
    if (gone && j.done == 0) {
      // The message was given up before its data was written: nobody waits for it.
      ++job_asking_;  // before it is finished: at the head it leaves at once, and the cursor goes back with it
      finish_job(index);
      continue;
    }
    const scatter_list& list = scatters_[j.scatter];
    while (j.done < j.length && j.segment < list.count) {
      if (piece_count_ == piece_depth) return;
      if (!translate.request.claim()) return;
      const wqe_segment& s = list.segments[j.segment];
      const std::uint32_t n = std::min(j.length - j.done, s.length - j.segment_offset);
      const unsigned slot = (piece_head_ + piece_count_++) % piece_depth;
      scatter_piece& p = pieces_[slot];
      p.job = static_cast<std::uint8_t>(index);
      p.answered = false;
      p.place = j.done;
      p.length = n;
      p.sent = 0;
      icm::translate_request t;
      if (j.reserved_key && s.lkey == reserved_lkey_) t.what = icm::translate_request::kind::reserved_key;
      t.access = icm::access::local_write;
      t.key = s.lkey;
      t.pd = j.pd;
      t.qpn = j.qpn;
      t.va = s.address + j.segment_offset;
      t.length = n;
      t.tag = make_tag(tag_kind::scatter, slot, 0);
      translate.request.push(t);
      j.done += n;
      j.segment_offset += n;
      if (j.segment_offset == s.length) {
        ++j.segment;
        j.segment_offset = 0;
      }
      p.last = j.done == j.length || j.segment == list.count;
    }
    ++job_asking_;
  }
}

// Writes in the order of the packets: what is reported as complete is in memory.
void requester::write_scatter() {
  while (piece_count_ != 0 && pieces_[piece_head_].answered) {
    if (!write_piece(pieces_[piece_head_])) return;
    piece_head_ = (piece_head_ + 1) % piece_depth;
    --piece_count_;
  }
}

// False: the DMA engine has no room.
bool requester::write_piece(scatter_piece& p) {
  scatter_job& j = jobs_[p.job];
  if (p.answer.status != icm::translate_status::ok) j.failed = true;
  const unsigned writes = j.failed ? 0 : p.answer.count;
  while (p.sent < writes) {
    if (!dma.request.claim()) return false;
    const auto& s = p.answer.segments[p.sent];
    pcie::dma_request d;
    d.op = pcie::dma_request::kind::write;
    d.notify = p.last && p.sent + 1 == writes;
    d.function = j.function;
    d.address = s.address;
    d.length = s.length;
    d.tag = make_tag(tag_kind::scatter, p.job, 0);
    d.source = j.frame->data() + j.frame->packet.payload_offset + p.place;
    d.keep = j.frame;
    if (p.last) d.span = j.frame->span;
    if (d.notify) j.waits_write = true;
    p.place += s.length;
    ++p.sent;
    dma.request.push(std::move(d));
  }
  if (p.last && !j.waits_write) finish_job(p.job);
  return true;
}

void requester::finish_job(unsigned job) {
  scatter_job& j = jobs_[job];
  finished_jobs_ |= std::uint64_t{1} << job;
  qp_runtime& r = qps_[j.qpn];
  --r.jobs;
  scatter_list& list = scatters_[j.scatter];
  if (--list.users == 0 && list.orphan) {
    scatters_.give(j.scatter);
    if (!room_.empty()) resume(room_.pop(qps_));
  }
  message& m = messages_[j.message_index];
  if (m.generation == j.generation) {
    --m.writes;
    if (j.failed && m.syndrome == 0) {
      m.syndrome = syndrome::local_protection;
      r.failing = true;
    }
    drain_.push(qps_, r);
  }
  j.frame.reset();
  wake_next();
  retire_jobs();
}

void requester::retire_jobs() {
  while (job_count_ != 0 && (finished_jobs_ >> job_head_ & 1) != 0) {
    finished_jobs_ &= ~(std::uint64_t{1} << job_head_);
    job_head_ = (job_head_ + 1) % static_cast<unsigned>(jobs_.size());
    --job_count_;
    RNIC_ASSERT(job_asking_ != 0, name() + ": a READ response is written whose addresses were not asked for");
    --job_asking_;
  }
}

}  // namespace rnic::transport
