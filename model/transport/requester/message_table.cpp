// SPDX-License-Identifier: Apache-2.0
// Messages of a queue pair: their order, what is behind a cut, the search by PSN.
#include "model/transport/requester/message_table.h"

#include <algorithm>

namespace rnic::transport {

message& message_table::append(qp_runtime& r, std::uint32_t& index) {
  index = messages_.take();
  message& m = messages_[index];
  const std::uint32_t generation = m.generation;
  m = message{};
  m.generation = generation;
  if (r.tail == no_index) {
    r.head = index;
  } else {
    m.last_read = messages_[r.tail].last_read;
    messages_[r.tail].next = index;
  }
  r.tail = index;
  return m;
}

void message_table::append_read(context& c, qp_runtime& r, std::uint32_t index, const send_wqe& wqe) {
  message& m = messages_[index];
  m.read = true;
  m.atomic = wqe.is_atomic();
  m.scatter = scatters_.write(wqe);
  ++c.rd_outstanding;
  // The last READ before it is there as long as there is one that waits for its answer, which is not behind that one.
  if (r.reading == no_index)
    r.reading = index;
  else
    messages_[m.last_read].next_read = index;
  m.last_read = index;
}

void message_table::answered(qp_runtime& r) { r.reading = messages_[r.reading].next_read; }

void message_table::give(message& m, std::uint32_t index) {
  const bool list_is_free = m.read && scatters_.release(m.scatter, owner_.now());
  ++m.generation;
  messages_.give(index);
  resumes_.resume_first(room_);
  if (list_is_free) resumes_.resume_first(lists_);
}

bool message_table::has_room(qp_runtime& r, bool reads) {
  const bool message = messages_.available(), list = !reads || scatters_.available();
  if (message && list) return true;
  (message ? lists_ : room_).push(qps_, r);
  return false;
}

void message_table::pass_on() {
  if (messages_.available()) resumes_.resume_first(room_);
  if (scatters_.available()) resumes_.resume_first(lists_);
}

void message_table::release_head(context& c, qp_runtime& r) {
  const std::uint32_t index = r.head;
  message& m = messages_[index];
  r.head = m.next;
  if (r.head == no_index) r.tail = no_index;
  if (r.reading == index) r.reading = m.next_read;  // it ended in error
  const returned one{1, m.read ? 1u : 0u, m.takes_receive ? 1u : 0u};
  one.take_off(c);
  give(m, index);
}

bool message_table::cut_behind(qp_runtime& r, std::uint32_t keep) {
  const std::uint32_t first = keep == no_index ? r.head : messages_[keep].next;
  if (first == no_index) return false;
  r.cut = first;
  r.tail = keep;
  if (keep == no_index) {
    r.head = r.reading = no_index;
    return true;
  }
  message& last = messages_[keep];
  last.next = no_index;
  if (r.reading == no_index) return true;
  const wire::psn_t reads_from = messages_[r.reading].first_psn;
  const bool forgotten = last.local ? !reads_from.before(last.first_psn) : reads_from.after(last.last_psn);
  if (forgotten)
    r.reading = no_index;
  else
    messages_[last.last_read].next_read = no_index;
  return true;
}

void message_table::release_cut(qp_runtime& r, returned& counts) {
  const std::uint32_t index = r.cut;
  message& m = messages_[index];
  r.cut = m.next;
  ++counts.messages;
  if (m.read) ++counts.reads;
  if (m.takes_receive) ++counts.receives;
  give(m, index);
}

// A context that host memory has lost meanwhile begins with nothing.
void message_table::returned::take_off(context& c) const {
  c.outstanding = static_cast<std::uint16_t>(c.outstanding - std::min<unsigned>(messages, c.outstanding));
  c.rd_outstanding = static_cast<std::uint8_t>(c.rd_outstanding - std::min<unsigned>(reads, c.rd_outstanding));
  c.receives_used = static_cast<std::uint16_t>(c.receives_used - std::min<unsigned>(receives, c.receives_used));
}

message_search::result message_search::find(const qp_runtime& r, wire::psn_t psn, std::uint32_t& index) {
  const bool goes_on = qpn_ == r.qpn && psn_ == psn && at_ != no_index && messages_[at_].generation == generation_;
  if (goes_on && found_) {
    index = at_;
    return result::found;
  }
  if (goes_on && looked_at_ == owner_.now()) {  // an entry a cycle
    owner_.wake_next();
    return result::pending;
  }
  qpn_ = r.qpn;
  psn_ = psn;
  at_ = goes_on ? messages_[at_].next : r.head;
  looked_at_ = owner_.now();
  index = at_;
  found_ = at_ != no_index && messages_[at_].holds(psn);
  if (at_ == no_index) return result::none;
  generation_ = messages_[at_].generation;
  if (found_) return result::found;
  ++steps_;
  owner_.wake_next();
  return result::pending;
}

}  // namespace rnic::transport
