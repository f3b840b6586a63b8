// SPDX-License-Identifier: Apache-2.0
#include "testbenches/system/conformance/scenario.h"

#include <algorithm>
#include <cstring>

#include "testbenches/system/conformance/frames.h"

namespace rnic::conformance {

namespace {

constexpr std::uint64_t patience_ps = 5000 * us;
constexpr unsigned settle_us = 30;  // longer than the flush of a receive queue, which looks at its record every 9.4 us

using image = std::vector<std::uint8_t>;
image copy_of(const hosts::buffer& b) { return image(b.at(), b.at() + b.memory.bytes); }

/// One row on its queue pair.
class performance {
 public:
  performance(const char* area, const row& r)
      : area_(area), row_(r), rig_(rig::instance()), estate_(estate::instance()) {}
  void run();

 private:
  void take(const step& s);
  void lands(const packet& p);
  void check_completions(bool sends, const std::vector<completion>& expected, unsigned posted, unsigned done);
  void check_memory(const char* name, const hosts::buffer& b, const image& expected) const;
  void check_events();
  void check_counters();
  void note() const;

  const char* area_;
  const row& row_;
  rig& rig_;
  estate& estate_;
  subject* on_ = nullptr;
  image target_, inbox_, origin_;
  fault_counts before_;
  std::uint64_t flushed_sends_ = 0, flushed_receives_ = 0;
};

const char* name_of(ibv_event_type e) {
  switch (e) {
    case IBV_EVENT_CQ_ERR:
      return "CQ_ERR";
    case IBV_EVENT_QP_FATAL:
      return "QP_FATAL";
    case IBV_EVENT_QP_REQ_ERR:
      return "QP_REQ_ERR";
    case IBV_EVENT_QP_ACCESS_ERR:
      return "QP_ACCESS_ERR";
    case IBV_EVENT_COMM_EST:
      return "COMM_EST";
    case IBV_EVENT_SQ_DRAINED:
      return "SQ_DRAINED";
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return "QP_LAST_WQE_REACHED";
    default:
      return "other";
  }
}

bool posts(const row& r) {
  return std::any_of(r.steps.begin(), r.steps.end(), [](const step& s) { return s.what == step::kind::post; });
}

void performance::run() {
  setup before = row_.before;
  before.sends = posts(row_);
  estate_.fill();
  subject on(rig_, row_.on, before);
  on_ = &on;
  unsigned sent_before = 0, received_before = 0;
  if (before.state == IBV_QPS_ERR || before.state == IBV_QPS_SQE) {  // how it got there is not the row's matter
    rig_.rest(settle_us * us);
    sent_before = static_cast<unsigned>(on.completions(true).size());
    received_before = static_cast<unsigned>(on.completions(false).size());
    on.state();
    rig_.events();
  }
  if (before.window) sent_before = 1;
  rig_.forget_frames();
  target_ = copy_of(estate_.target);
  inbox_ = copy_of(estate_.inbox);
  origin_ = copy_of(estate_.origin);
  before_ = rig_.faults();
  for (const step& s : row_.steps) take(s);
  rig_.rest(settle_us * us);
  for (heard_frame h; rig_.hear(h, 0);) ADD_FAILURE() << "unexpected: " << describe(h.packet);
  check_completions(true, row_.after.sent, on.sends_posted(), sent_before);
  check_completions(false, row_.after.received, on.receives_posted(), received_before);
  EXPECT_EQ(on.state(), row_.after.state);
  check_events();
  check_memory("what the peer may reach", estate_.target, target_);
  check_memory("what receives are of", estate_.inbox, inbox_);
  check_memory("what requests are of", estate_.origin, origin_);
  check_counters();
  note();
}

void performance::take(const step& s) {
  switch (s.what) {
    case step::kind::inject:
      rig_.inject(frame_of(s.p, *on_));
      if (s.p.lands >= 0) lands(s.p);
      break;
    case step::kind::hear: {
      heard_frame h;
      if (rig_.hear(h, patience_ps))
        expect_heard(s.p, h, *on_);
      else
        ADD_FAILURE() << "not heard: " << as_json(s.p, row_.on);
      break;
    }
    case step::kind::post:
      on_->post(s.w);
      break;
    case step::kind::post_receive:
      on_->post(s.r);
      break;
    case step::kind::modify:
      EXPECT_EQ(on_->modify(s.state), 0);
      break;
    case step::kind::ring:
      on_->ring();
      break;
    case step::kind::drain:
      EXPECT_EQ(on_->drain(), 0);
      break;
    case step::kind::look:
      on_->state();
      break;
    case step::kind::rest:
      rig_.rest(s.us * us);
      break;
    case step::kind::silence: {
      heard_frame h;
      if (rig_.hear(h, s.us * us)) ADD_FAILURE() << "not silent: " << describe(h.packet);
      break;
    }
  }
}

/// The payload must be in memory in the end. Datagrams begin behind the 40 bytes of their address part.
void performance::lands(const packet& p) {
  const wire::opcode_traits& t = wire::traits(opcode_of(p, row_.on));
  const bool write = p.op >= operation::write_first && p.op <= operation::write_only_immediate;
  image& to = t.response ? origin_ : write ? target_ : inbox_;
  if (t.atomic_eth) {
    for (std::size_t at = static_cast<std::size_t>(p.lands); ++target_[at] == 0;) ++at;
    return;
  }
  image bytes = payload_of(p);
  if (t.atomic_ack_eth) bytes = {8, 7, 6, 5, 4, 3, 2, 1};  // in the host's byte order
  constexpr std::int64_t address_part = 40;
  const bool datagram = row_.on == service::ud;
  std::copy(bytes.begin(), bytes.end(), to.begin() + p.lands + (datagram ? address_part : 0));
  if (!datagram) return;
  rig_.rest(10 * us);
  std::copy_n(estate_.inbox.at(static_cast<std::uint64_t>(p.lands)), address_part, to.begin() + p.lands);
}

void performance::check_memory(const char* name, const hosts::buffer& b, const image& expected) const {
  if (std::memcmp(b.at(), expected.data(), expected.size()) == 0) return;
  const auto at = std::mismatch(expected.begin(), expected.end(), b.at()).first - expected.begin();
  ADD_FAILURE() << "memory: " << name << " is otherwise from byte " << at << " on";
}

/// In the order of posting: those of the list, then, in the error state, everything that is left, flushed.
void performance::check_completions(bool sends, const std::vector<completion>& expected, unsigned posted,
                                    unsigned done) {
  SCOPED_TRACE(sends ? "completions of sends" : "completions of receives");
  const std::vector<ibv_wc> found = on_->completions(sends);
  std::vector<completion> all = expected;
  const bool shared = on_->srqn() != 0 && !sends;
  if (row_.after.flushes && !shared && (sends || !row_.after.receives_live))
    while (done + all.size() < posted) {
      all.push_back(bad(IBV_WC_WR_FLUSH_ERR));
      ++(sends ? flushed_sends_ : flushed_receives_);
    }
  EXPECT_EQ(found.size(), all.size());
  for (std::size_t i = 0; i < std::min(found.size(), all.size()); ++i) {
    SCOPED_TRACE(i);
    const ibv_wc& wc = found[i];
    const completion& c = all[i];
    EXPECT_EQ(wc.status, c.status) << hosts::to_string(wc.status);
    EXPECT_EQ(wc.wr_id, done + i) << "order";
    EXPECT_EQ(wc.qp_num, on_->qp()->qp_num);
    EXPECT_EQ(wc.vendor_err, c.vendor < 0 ? 0u : static_cast<unsigned>(c.vendor));
    if (c.status != IBV_WC_SUCCESS) continue;
    if (c.opcode >= 0) {
      EXPECT_EQ(static_cast<int>(wc.opcode), c.opcode);
    }
    if (c.bytes >= 0) {
      EXPECT_EQ(wc.byte_len, c.bytes);
    }
  }
}

void performance::check_events() {
  std::vector<ibv_event_type> found, expected = row_.after.events;
  for (const ibv_async_event& e : rig_.events()) {
    found.push_back(e.event_type);
    if (e.event_type != IBV_EVENT_CQ_ERR && e.event_type != IBV_EVENT_SRQ_LIMIT_REACHED) {
      EXPECT_EQ(e.element.qp, on_->qp());
    }
  }
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  std::string names;
  for (const ibv_event_type e : found) names += std::string(" ") + name_of(e);
  EXPECT_EQ(found, expected) << "events:" << names;
}

/// What is counted in the block as well as told in a diagnostic of firmware's: both must say the same.
struct twin {
  const char *diagnostic, *counter;
};
constexpr twin twins[] = {{"diag.rq_num_lle", "responder.error.local_length"},
                          {"diag.rq_num_lqpoe", "responder.error.local_operation"},
                          {"diag.rq_num_lpe", "responder.error.local_protection"},
                          {"diag.rq_num_wrfe", "responder.error.flushed"},
                          {"diag.rq_num_rire", "responder.error.remote_invalid"},
                          {"diag.rq_num_rae", "responder.error.remote_access"},
                          {"diag.rq_num_rnr", "responder.rnr"},
                          {"diag.rq_num_oos", "responder.out_of_sequence"},
                          {"diag.rq_num_dup", "responder.duplicates"},
                          {"diag.sq_num_to", "requester.timeouts"}};

void performance::check_counters() {
  std::map<std::string, std::uint64_t> expected = row_.after.counters, moved;
  if (flushed_sends_ != 0) expected["diag.sq_num_wrfe"] += flushed_sends_;
  if (flushed_receives_ != 0) expected["diag.rq_num_wrfe"] += flushed_receives_;
  for (const twin& t : twins)
    if (const auto told = expected.find(t.diagnostic); told != expected.end()) expected[t.counter] += told->second;
  for (const auto& [name, value] : rig_.faults())
    if (value != before_[name]) moved[name] = value - before_[name];
  for (const auto& [name, value] : moved) {
    const auto at = expected.find(name);
    EXPECT_EQ(value, at == expected.end() ? 0 : at->second) << "counter " << name;
  }
  for (const auto& [name, value] : expected) {
    EXPECT_TRUE(before_.count(name) != 0) << "no counter " << name;
    EXPECT_TRUE(moved.count(name) != 0 || value == 0) << "counter " << name << " has not moved";
  }
}

void performance::note() const {
  std::string heard;
  for (const step& s : row_.steps)
    if (s.what == step::kind::hear) heard += (heard.empty() ? "" : ",") + as_json(s.p, row_.on);
  rig_.note(std::string("{\"area\":\"") + area_ + "\",\"row\":\"" + to_string(row_.on) + "_" + row_.name +
            "\",\"peer\":" + std::to_string(on_->peer_qpn()) + ",\"hears\":[" + heard + "]}");
}

step make(step::kind what) {
  step s;
  s.what = what;
  return s;
}

}  // namespace

const char* to_string(service s) {
  switch (s) {
    case service::rc:
      return "rc";
    case service::uc:
      return "uc";
    case service::ud:
      return "ud";
    default:
      return "xrc";
  }
}

packet ack(int psn, std::uint32_t msn, std::uint8_t syndrome) {
  return packet(operation::acknowledge, psn).aeth(syndrome, msn);
}

packet read_response(operation which, int psn, std::uint32_t bytes, std::uint32_t msn) {
  return packet(which, psn).bytes(bytes).aeth(0x1f, msn);
}

step inject(const packet& p) {
  step s = make(step::kind::inject);
  s.p = p;
  return s;
}

step hear(const packet& p) {
  step s = make(step::kind::hear);
  s.p = p;
  return s;
}

step post(const work& w) {
  step s = make(step::kind::post);
  s.w = w;
  return s;
}

step post(const receive& r) {
  step s = make(step::kind::post_receive);
  s.r = r;
  return s;
}

step modify(ibv_qp_state to) {
  step s = make(step::kind::modify);
  s.state = to;
  return s;
}

step ring() { return make(step::kind::ring); }
step drain() { return make(step::kind::drain); }
step look() { return make(step::kind::look); }

step rest(unsigned microseconds) {
  step s = make(step::kind::rest);
  s.us = microseconds;
  return s;
}

step silence(unsigned microseconds) {
  step s = make(step::kind::silence);
  s.us = microseconds;
  return s;
}

completion good(ibv_wc_opcode opcode, std::int64_t bytes) {
  completion c;
  c.opcode = static_cast<int>(opcode);
  c.bytes = bytes;
  return c;
}

completion bad(ibv_wc_status status, int vendor) {
  completion c;
  c.status = status;
  c.vendor = vendor;
  return c;
}

void play(const char* area, const row& r) {
  SCOPED_TRACE(r.name);
  rig::instance().run([&] { performance(area, r).run(); });
}

std::ostream& operator<<(std::ostream& to, const row& r) { return to << to_string(r.on) << "_" << r.name; }

std::vector<row> on(std::initializer_list<service> services, const std::vector<row>& rows) {
  std::vector<row> all;
  for (const service s : services)
    for (row r : rows) {
      r.on = s;
      all.push_back(std::move(r));
    }
  return all;
}

}  // namespace rnic::conformance
