// SPDX-License-Identifier: Apache-2.0
#include "model/icm/translation.h"

#include <utility>

#include "model/sim/check.h"
#include "model/sim/seldom.h"

namespace rnic::icm {

namespace {
const translation_config& checked(const std::string& name, const translation_config& c, unsigned clients) {
  const unsigned l = c.mtt_line_entries;
  if (l != 1 && l != 2 && l != 4 && l != 8) throw sim::config_error(name + ".mtt_line_entries: 1, 2, 4 or 8");
  if (clients == 0 || clients > 64) throw sim::config_error(name + ": 1..64 clients");
  return sim::checked(c, name);
}
}  // namespace

translation::translation(std::string name, sim::clock_domain& domain, const translation_config& config,
                         const icm_map& map, unsigned clients)
    : clocked_block(name, domain),
      dma(*this),
      config_(checked(this->name(), config, clients)),
      tables_(*this, config_, map),
      fetches_(*this, config_, dma, tables_, stats_),
      answers_(*this, response, clients, config.waiting, config.translate_cycles, stats_.refused),
      jobs_(config.waiting),
      key_access_(tables_, fetches_),
      keys_(*this, config_.keys, key_access_) {
  for (unsigned i = 0; i < clients; ++i) {
    request.emplace_back(*this);
    request.back().show_in(asking_, i);
    response.emplace_back(*this);
  }
  free_ = config.waiting == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << config.waiting) - 1;
}

void translation::tick() {
  free_ |= answers_.deliver();
  take_fetches();
  look_up();
  keys_.work();
}

void translation::take_fetches() {
  fetches_.take([this](const translation_fetch& f, unsigned index) {
    job& j = jobs_[index];
    if (!f.stale) j.take(f, tables_.log_line());
    if (--j.fetches == 0) retry_ |= std::uint64_t{1} << index;
  });
}

// ---------------------------------------------------------------- look-up

/// One look-up a cycle: first what waited longest for a fetch, then new requests.
void translation::look_up() {
  std::uint64_t ready = retry_;
  if (sim::seldom(blocked_ != 0) && !fetches_.full() && dma.request.claim()) ready |= blocked_;
  if (sim::seldom(ready != 0)) {
    const unsigned index = static_cast<unsigned>(oldest(ready));
    retry_ &= ~(std::uint64_t{1} << index);
    blocked_ &= ~(std::uint64_t{1} << index);
    run(index);
  } else {
    accept();
  }
  if (retry_ != 0 || (ready != 0 && blocked_ != 0) || (free_ != 0 && asking_ != 0)) wake_next();
  look_up_.waits_for(held_up_by());
}

const char* translation::held_up_by() const {
  if (blocked_ != 0) return fetches_.full() ? "memory" : dma.request.can_push() ? nullptr : "dma";
  if (free_ != 0) return nullptr;
  for (std::uint64_t rest = asking_; rest != 0; rest &= rest - 1)
    if (request[static_cast<unsigned>(__builtin_ctzll(rest))].can_pop()) return fetches_.none() ? "clients" : "memory";
  return nullptr;
}

int translation::oldest(std::uint64_t jobs) const {
  int best = -1;
  for (; jobs != 0; jobs &= jobs - 1) {
    const int i = __builtin_ctzll(jobs);
    if (best < 0 || jobs_[static_cast<unsigned>(i)].sequence < jobs_[static_cast<unsigned>(best)].sequence) best = i;
  }
  return best;
}

void translation::accept() {
  if (sim::seldom(free_ == 0)) return;  // an answer's delivery goes on with it
  std::uint64_t asking = 0;
  for (std::uint64_t rest = asking_; rest != 0; rest &= rest - 1) {
    const unsigned i = static_cast<unsigned>(__builtin_ctzll(rest));
    if (request[i].can_pop()) asking |= std::uint64_t{1} << i;
  }
  if (asking == 0) return;
  const unsigned client = static_cast<unsigned>(arbiter_.pick(asking));
  const unsigned index = static_cast<unsigned>(__builtin_ctzll(free_));
  free_ &= free_ - 1;
  job& j = jobs_[index];
  j.request = request[client].front();
  request[client].drop();
  RNIC_ASSERT(j.request.length <= 4096, name() + ": a request is at most 4096 bytes");
  j.answer = translate_response{};
  j.answer.tag = j.request.tag;
  j.client = client;
  j.sequence = ++sequence_;
  j.key = j.request.key;
  j.through_window = j.have_mpt = j.pages_known = false;
  j.pages = {};
  j.fetches = 0;
  ++stats_.requests;
  run(index);
}

void translation::run(unsigned index) {
  look_up_.start(1);
  const step s = advance(jobs_[index], index);
  if (s == step::done && answers_.answer(jobs_[index].client, index, jobs_[index].answer))
    free_ |= std::uint64_t{1} << index;
  if (s == step::blocked) blocked_ |= std::uint64_t{1} << index;
  if (s == step::again) retry_ |= std::uint64_t{1} << index;
}

translation::step translation::advance(job& j, unsigned index) {
  const translate_request& r = j.request;
  if (!j.pages_known) {
    if (r.length == 0 && (r.what != translate_request::kind::key || r.check_length == 0)) return step::done;
    if (r.what == translate_request::kind::reserved_key) {
      j.answer_contiguous();
      return step::done;
    }
    if (r.what == translate_request::kind::buffer) {
      if (r.log_page < 12 || r.log_page > 51) {
        j.answer.status = translate_status::not_mapped;
        return step::done;
      }
      j.log_page = r.log_page;
      j.split(r.buffer_mtt, r.va);
    } else {
      const step s = check_key(j, index);
      if (s != step::done || !j.pages_known) return s;
    }
  }
  return resolve_pages(j, index);
}

/// done with pages_known unset: the answer is complete. again: in the next cycle, when there is a port, or with the
/// region below the window.
translation::step translation::check_key(job& j, unsigned index) {
  const std::uint32_t slot = tables_.slot_of(j.key);
  const mpt_entry* e = &j.mpt;
  if (!j.have_mpt) {
    e = tables_.mpt(slot);
    if (e == nullptr) {
      const step s = fetches_.fetch(true, slot, j, index, keys_.locked(slot));
      if (s == step::done) j.answer.status = translate_status::bad_key;
      return s;
    }
    if (!tables_.mpt_reads().try_access(translation_tables::by_look_up)) return step::again;
    ++stats_.mpt_hits;
  }
  j.have_mpt = false;
  j.answer.status = check_mpt(*e, j.request, j.key, j.through_window);
  if (j.answer.status != translate_status::ok) return step::done;
  if (!e->region()) {
    j.key = e->lkey;
    if (e->zero_based()) j.request.va += e->start;
    j.through_window = true;
    return step::again;
  }
  if (j.request.length == 0) return step::done;
  if (e->physical()) {
    j.answer_contiguous();
    return step::done;
  }
  j.log_page = static_cast<std::uint8_t>(e->log_page);
  const std::uint64_t page_bytes = std::uint64_t{1} << j.log_page;
  j.split(e->mtt_address, j.request.va - e->start + (e->start & (page_bytes - 1)));
  return step::done;
}

/// Looks up what is still missing; the fetches of two lines are under way together. again: the second of two lines that
/// are on chip, in the next cycle, when there is a port.
translation::step translation::resolve_pages(job& j, unsigned index) {
  step result = step::done;
  const translation_tables::mtt_line* read = nullptr;  // in this cycle
  for (unsigned i = 0; i < j.answer.count; ++i) {
    job::page_part& p = j.pages[i];
    if (p.resolved) continue;
    const std::uint64_t line = tables_.line_of(p.index);
    if (const auto* l = tables_.mtt(line); l != nullptr) {
      if (l != read && !tables_.mtt_reads().try_access(translation_tables::by_look_up)) return step::again;
      read = l;
      p.entry = l->entry[p.index & (config_.mtt_line_entries - 1)];
      p.resolved = true;
      ++stats_.mtt_hits;
      continue;
    }
    const step s = fetches_.fetch(false, line, j, index, false);
    if (s == step::done) {
      p.entry = 0;
      p.resolved = true;
    } else if (s == step::blocked || result == step::done) {
      result = s;  // with one fetch under way and the other refused, the job tries again as soon as it can go out
    }
  }
  if (result == step::done && j.fetches != 0) return step::waits;  // one that nobody needs any more knows this place
  if (result == step::done) j.answer_pages();
  return result;
}

// ---------------------------------------------------------------- registers

void translation::drop_mpt(std::uint32_t index) {
  const std::uint64_t slot = index & tables_.mpt_mask();
  tables_.erase_mpts(slot, slot);
  fetches_.drop(true, slot, slot);
  dropped_at_ = sequence_;
  keys_.dropped(slot, slot);
}

void translation::drop_mtt(std::uint64_t mtt_address, std::uint64_t entries) {
  if (entries == 0) return;
  key_access_.forget_mtts(mtt_address, entries);
  dropped_at_ = sequence_;
}

void translation::drop_all() {
  tables_.erase_mpts(0, ~std::uint64_t{0} - 1);
  tables_.erase_mtts(0, ~std::uint64_t{0} - 1);
  fetches_.drop(true, 0, ~std::uint64_t{0});
  fetches_.drop(false, 0, ~std::uint64_t{0});
  dropped_at_ = sequence_;
  keys_.dropped(0, ~std::uint64_t{0});
}

bool translation::busy() const {
  if (now() <= answers_.last_at() || keys_.busy()) return true;
  for (unsigned i = 0; i < jobs_.size(); ++i)
    if ((free_ >> i & 1) == 0 && jobs_[i].sequence <= dropped_at_) return true;
  return false;
}

void translation::announce(sim::statistics& to) const {
  const key_engine::statistics& k = keys_.counters();
  const std::pair<const char*, const std::uint64_t*> named[] = {{"requests", &stats_.requests},
                                                                {"mpt_hits", &stats_.mpt_hits},
                                                                {"mpt_misses", &stats_.mpt_misses},
                                                                {"mtt_hits", &stats_.mtt_hits},
                                                                {"mtt_misses", &stats_.mtt_misses},
                                                                {"merged", &stats_.merged},
                                                                {"refused", &stats_.refused},
                                                                {"stale", &stats_.stale},
                                                                {"keys.invalidations", &k.invalidations},
                                                                {"keys.registrations", &k.registrations},
                                                                {"keys.bindings", &k.bindings},
                                                                {"keys.refused", &k.refused},
                                                                {"keys.revocations", &k.revocations}};
  for (const auto& [n, c] : named) to.add(name() + "." + n, *c);
  tables_.announce(to);
}

}  // namespace rnic::icm
