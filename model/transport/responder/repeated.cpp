// SPDX-License-Identifier: Apache-2.0
// Generator of READ and atomic responses: a requester that has gone back.
#include <algorithm>

#include "model/transport/responder/reads.h"

namespace rnic::transport {

/// Makes room for a repeated request among those of its flow. What is behind it has not been answered in order for the
/// requester, whatever of it was sent: it begins again when the repeated one is answered, and so do the answers that
/// wait behind it. That way nothing depends on whether the requests behind are repeated and whether they arrive.
/// Returns the place.
std::uint32_t responder_reads::go_back(const request& r) {
  responder_flow& f = flows_[r.flow];
  yield(r, end_psn(r));
  std::uint32_t place = f.reads_accepted - f.reads_held;  // those that wait in memory are the youngest
  if (f.reads_held != 0) f.ctx->flags |= icm::responder_flag_reads_late;
  for (const std::uint16_t j : active_) {
    job& x = jobs_[j];
    if (x.r.flow != r.flow || x.given_up || wire::psn_t(x.r.psn).before(wire::psn_t(r.psn))) continue;
    if (static_cast<std::int32_t>(x.sequence - place) < 0) place = x.sequence;
    ++x.sequence;
    x.r.msn = r.msn;  // so many messages were completed by now, and no answer takes any back
    begin_again(x);
  }
  if (static_cast<std::int32_t>(f.reads_gathered - place) > 0) f.reads_gathered = place;
  const wire::psn_t psn(r.psn);
  if (f.ack_pending && !psn.after(wire::psn_t(f.ack_psn))) {
    ++f.ack_after;
    f.ack_msn = r.msn;
  }
  if (f.nak_pending && psn.before(wire::psn_t(f.nak_psn))) {
    ++f.nak_after;
    f.nak_msn = r.msn;
  }
  return place;
}

/// Requests under way leave to the repeated one, which ends before PSN `end`, what it asks for: they keep what is
/// behind, or end.
void responder_reads::yield(const request& r, wire::psn_t end) {
  responder_flow& f = flows_[r.flow];
  for (std::size_t k = 0; k < active_.size();) {
    const std::uint16_t j = active_[k++];
    job& x = jobs_[j];
    const wire::psn_t first(x.r.psn);
    const bool shares = !end_psn(x.r).before(wire::psn_t(r.psn) + 1) && first.before(end);
    if (x.r.flow != r.flow || x.given_up || x.r.what != kind::read || !shares) continue;
    begin_again(x);
    if (end.before(end_psn(x.r))) {
      const std::uint32_t bytes = static_cast<std::uint32_t>(end - first) * path_mtu(*f.ctx);
      x.r.psn = end.value();
      x.r.va += bytes;
      x.r.length -= bytes;
      x.r.first = icm::translate_response{};
      continue;
    }
    const std::uint32_t gone = x.sequence;
    const auto behind = [gone](std::uint32_t at) { return static_cast<std::int32_t>(at - gone) > 0; };
    remove(j);
    --k;
    --f.reads_accepted;
    if (f.reads_on_chip() == 0) --reading_flows_;
    for (const std::uint16_t i : active_)
      if (jobs_[i].r.flow == r.flow && behind(jobs_[i].sequence)) --jobs_[i].sequence;
    for (std::uint32_t* at : {&f.reads_gathered, &f.ack_after, &f.nak_after})
      if (behind(*at)) --*at;
  }
}

/// Nothing of a READ was gathered or sent. An atomic is executed once; its answer waits.
void responder_reads::begin_again(job& x) {
  if (x.r.what != kind::read) return;
  while (x.head != no_link) {
    const std::uint16_t g = x.head;
    x.head = gathers_[g].next;
    abandon(g);
  }
  x.tail = no_link;
  x.gathered = 0;
  x.all_asked = false;
}

/// What memory and translation still owe comes to a gather of nobody.
void responder_reads::abandon(std::uint16_t g) {
  gather& a = gathers_[g];
  if (a.to_read) --to_read_;
  a.to_read = false;
  if (a.open == 0) return free_gather(g);
  a.job = no_link;
  ++flows_[a.flow].reads_abandoned;
}

bool responder_reads::was_abandoned(std::uint16_t g) {
  const gather& a = gathers_[g];
  if (a.job != no_link) return false;
  if (a.open == 0) {
    --flows_[a.flow].reads_abandoned;
    free_gather(g);
    owner_.wake_next();  // somebody may wait for the room
  }
  return true;
}

}  // namespace rnic::transport
