// SPDX-License-Identifier: Apache-2.0
// Responder: READs that were accepted without a place on chip, and their way back to it.
#include <algorithm>
#include <utility>

#include "model/transport/responder/responder.h"

namespace rnic::transport {

/// A QP whose READs are on chip keeps its context there until their responses have left: in the context's set there
/// stays room for another, so that what arrives for that one does not wait for responses.
bool responder::read_has_place(std::uint32_t qpn, bool has_some) const {
  return reads.can_take_new(has_some) && (has_some || reads.idle() || !contexts_.crowded(qpn));
}

/// A READ that has no place in the generator goes to host memory. False: not yet, or there is no memory for it and it
/// waits for a place where it is.
bool responder::put_aside(responder_flow& f, const read_command& r) {
  switch (backlog_.keep(f, r)) {
    case read_backlog::result::pending:
      return false;
    case read_backlog::result::done:
      return true;
    case read_backlog::result::no_memory:
      break;
  }
  if (f.reads_held != 0 || !reads.can_take() || !may_hand_over()) return false;
  hand_over(f, r);
  return true;
}

/// One request comes back in a cycle; those of several QPs are fetched at once.
void responder::work_backlog() {
  fetch_more();
  for (std::size_t k = 0; k < fetching_.size(); ++k) {
    const std::uint16_t i = fetching_[k];
    const fetched what = fetch_read(i);
    if (what == fetched::no) continue;
    responder_flow& f = flows_[i];
    f.fetching = false;
    fetching_.erase(fetching_.begin() + static_cast<std::ptrdiff_t>(k));
    if (f.reads_held != 0) backlog_.list(f.qpn);  // behind the others
    wake_next();
    return;
  }
}

/// The QPs that have waited longest get a place on chip.
void responder::fetch_more() {
  if (backlog_.empty() || fetching_.size() == config_.read_fetches) return;
  const std::uint32_t qpn = backlog_.front();
  std::uint16_t i = find_flow(qpn);
  if (halted_.count(qpn) != 0 || (i != no_link && flows_[i].stop)) {  // what waits of it is given up
    backlog_.pop();
    return wake_next();
  }
  if (!read_has_place(qpn, i != no_link && flows_[i].reads_on_chip() != 0)) return;  // who has one wakes us
  if (i == no_link) i = open_flow(qpn);
  if (i == no_link) return;  // one that leaves wakes us
  backlog_.pop();
  flows_[i].fetching = true;
  fetching_.push_back(i);
  if (!backlog_.empty()) wake_next();
}

responder::fetched responder::fetch_read(std::uint16_t i) {
  responder_flow& f = flows_[i];
  if (!resolve(f)) return f.waited_context ? fetched::no : fetched::nothing;
  if (f.reads_held == 0) return fetched::nothing;
  if (!read_has_place(f.qpn, f.reads_on_chip() != 0)) return fetched::nothing;  // somebody else has taken it
  if (!may_hand_over()) return fetched::no;                                     // who makes room ticks us
  read_command r;
  r.flow = i;
  r.writes_before = writes_asked_;
  switch (backlog_.fetch(f, r)) {
    case read_backlog::result::pending:
      return fetched::no;
    case read_backlog::result::no_memory:
      read_backlog::forget(f);
      return fetched::nothing;
    case read_backlog::result::done:
      break;
  }
  count_use(f);
  f.waited_context = false;
  spans_.leave(r.span, name(), "READ backlog", now_ps(), sim::wait::arbitration);
  hand_over(f, r, true);
  return fetched::request;
}

void responder::stop_fetching(responder_flow& f) {
  if (!f.fetching) return;
  f.fetching = false;
  fetching_.erase(std::find(fetching_.begin(), fetching_.end(), index_of(f)));
}

}  // namespace rnic::transport
