// SPDX-License-Identifier: Apache-2.0
// Fault plans as TOML files.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>

#include "model/fabric/fault_plan.h"
#include "model/sim/check.h"
#include "model/sim/toml_section.h"
#include "model/wire/packet.h"

namespace rnic::fabric {

namespace {

constexpr std::uint64_t most = 1'000'000'000'000;  // of anything that is counted
constexpr std::uint64_t longest_us = 1'000'000'000;
constexpr std::uint64_t longest_frame = 10240;
constexpr std::uint64_t most_outages = 100'000;

using section = sim::toml_section;

/// "RC SEND Only" as rc_send_only.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) text += c == ' ' ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return text;
}

/// Opcodes that a word means: a name with its transport (rc_send_only), one without (send_only: of any transport), or
/// the beginning of such a name (send, rdma_write, rdma_read_response, rc).
std::bitset<256> opcodes_of(const std::string& word) {
  std::bitset<256> exact, beginning;
  for (unsigned code = 0; code < 256; ++code) {
    const wire::opcode_traits& t = wire::traits(static_cast<std::uint8_t>(code));
    if (!t.known) continue;
    const std::string full = plain(t.name);
    const std::string bare = full.substr(std::min(full.size(), full.find('_') + 1));
    for (const std::string& name : {full, bare}) {
      if (name == word) exact.set(code);
      if (name.compare(0, word.size() + 1, word + "_") == 0) beginning.set(code);
    }
  }
  return exact.any() ? exact : beginning;
}

void read_opcodes(const section& s, fault_rule& r) {
  const toml::node* n = s.find("opcode");
  if (n == nullptr) return;
  const auto add = [&](const toml::node& one) {
    std::bitset<256> codes;
    if (one.is_string()) codes = opcodes_of(one.as_string()->get());
    if (one.is_integer() && one.as_integer()->get() >= 0 && one.as_integer()->get() <= 255)
      codes.set(static_cast<std::size_t>(one.as_integer()->get()));
    if (codes.none())
      s.fail(one, "opcode: " + section::shown(one) +
                      " is not legal, expected 0 to 255 or a name or its beginning, as rc_send_only, send_last, "
                      "rdma_write, rdma_read_request, rdma_read_response, acknowledge, cnp");
    r.opcodes |= codes;
  };
  r.by_opcode = true;
  const toml::array* const list = n->as_array();
  if (list != nullptr && list->empty()) s.fail(*n, "opcode: [] is not legal, it means no frame; expected one or more");
  if (list != nullptr)
    for (const toml::node& one : *list) add(one);
  else
    add(*n);
}

void read_selection(const section& s, fault_rule& r) {
  unsigned w = 0;
  if (s.word("direction", {"both", "a_to_b", "b_to_a"}, w)) r.directions = w == 0 ? 3 : static_cast<std::uint8_t>(w);
  if (s.word("frames_of", {"any", "roce"}, w)) r.roce_only = w == 1;
  read_opcodes(s, r);
  if (s.word("answer", {"any", "ack", "rnr_nak", "nak"}, w)) r.answer = static_cast<answer_kind>(w);
  s.number("qpn", 0, 0xffffff, r.qpn);
  s.number("flow", 1, 0xffffff, r.flow);
  if (s.number("psn", 0, 0xffffff, r.psn)) r.by_psn = fault_rule::psn_kind::absolute;
  if (s.has("psn_offset") && s.has("psn")) s.fail(*s.find("psn_offset"), "psn_offset: not together with psn");
  if (s.number("psn_offset", 0, 0x7fffff, r.psn)) r.by_psn = fault_rule::psn_kind::relative;
}

void read_hits(const section& s, fault_rule& r) {
  std::uint64_t n = 0;
  const bool by_iter = s.has("iter");
  if (by_iter && r.by_psn == fault_rule::psn_kind::any)
    s.fail(*s.find("iter"), "iter: needs psn or psn_offset, of which it counts the transmissions");
  for (const char* key : {"nth", "iter"})
    if (s.number(key, 1, most, n)) r.first = r.last = n;
  if (by_iter && s.has("nth")) s.fail(*s.find("nth"), "nth: not together with iter");
  for (const char* key : {"first", "last", "every"})
    if (s.has(key) && (s.has("nth") || by_iter))
      s.fail(*s.find(key), std::string(key) + ": not together with nth or iter");
  s.number("first", 1, most, r.first);
  if (s.number("last", 1, most, r.last) && r.last < std::max<std::uint64_t>(r.first, 1))
    s.fail(*s.find("last"), "last: must not be before first");
  s.number("every", 1, most, r.every);
  double percent = 100;
  if (s.percent("probability", percent)) r.probability = rate_rule(r.action, percent).probability;
  s.number("times", 1, most, r.times);
}

void read_damage(const section& s, fault_rule& r) {
  unsigned w = 0;
  r.right = made_right::fcs;
  if (s.word("part", {"any", "payload", "header", "icrc", "fcs"}, w)) r.part = static_cast<frame_part>(w);
  if (const toml::node* n = s.find("field")) {
    std::string name, legal;
    s.text("field", name);
    for (unsigned f = 1; f < header_fields; ++f) {
      legal += (f == 1 ? "" : ", ") + std::string(to_string(static_cast<header_field>(f)));
      if (name == to_string(static_cast<header_field>(f))) r.field = static_cast<header_field>(f);
    }
    if (r.field == header_field::none) s.fail(*n, "field: '" + name + "' is not legal, expected one of " + legal);
    if (s.has("part") && r.part != frame_part::header) s.fail(*n, "field: needs part = \"header\"");
    r.part = frame_part::header;
  }
  const unsigned bits = r.field == header_field::none ? 8 * (longest_frame + 1) : width_of(r.field);
  r.by_offset = s.number("offset", 0, (bits + 7) / 8 - 1, r.offset);
  s.number("bit", 0, std::min(bits, 8u) - 1, r.bit);
  if (const toml::node* n = s.find("value")) {
    if (r.field == header_field::none) s.fail(*n, "value: needs field");
    r.by_value = s.number("value", 0, (std::uint64_t{1} << std::min(bits, 63u)) - 1, r.value);
    if (r.by_offset || r.bit < 8) s.fail(*n, "value: not together with offset or bit");
  }
  if (s.word("made_right", {"nothing", "fcs", "icrc", "either"}, w)) r.right = static_cast<made_right>(w);
}

void read_effect(const section& s, fault_rule& r) {
  std::uint64_t n = 0;
  switch (r.action) {
    case fault_action::drop:
    case fault_action::mark_congestion:
      break;
    case fault_action::duplicate:
      s.number("copies", 1, 1000, r.copies);
      break;
    case fault_action::reorder:
      s.number("frames", 1, 1000, r.frames);
      if (s.number("hold_us", 1, longest_us, n)) r.hold_ps = n * sim::ps_per_us;
      break;
    case fault_action::delay:
      if (s.number("delay_ns", 1, longest_us * 1000, n)) r.delay_ps = n * sim::ps_per_ns;
      break;
    case fault_action::corrupt:
      read_damage(s, r);
      break;
  }
}

/// Fields that only one kind of event has, for those that do not have them.
void check_effect_fields(const section& s, const fault_rule& r) {
  const struct {
    const char* key;
    fault_action action;
  } only[] = {{"copies", fault_action::duplicate}, {"frames", fault_action::reorder},
              {"hold_us", fault_action::reorder},  {"delay_ns", fault_action::delay},
              {"part", fault_action::corrupt},     {"field", fault_action::corrupt},
              {"offset", fault_action::corrupt},   {"bit", fault_action::corrupt},
              {"value", fault_action::corrupt},    {"made_right", fault_action::corrupt}};
  for (const auto& o : only)
    if (s.has(o.key) && o.action != r.action)
      s.fail(*s.find(o.key), std::string(o.key) + ": only for type = \"" + to_string(o.action) + "\", this is \"" +
                                 to_string(r.action) + "\"");
}

fault_rule read_event(const std::string& file, const toml::node& node, std::size_t number) {
  const std::string title = "event " + std::to_string(number) + ": ";
  if (!node.is_table())
    throw sim::config_error(file + ":" + std::to_string(node.source().begin.line) + ": " + title + "not a table");
  const section s(file, title, *node.as_table());
  s.allow({"type",  "name",        "direction",  "frames_of", "opcode", "answer",     "qpn",
           "flow",  "psn",         "psn_offset", "iter",      "nth",    "first",      "last",
           "every", "probability", "times",      "copies",    "frames", "hold_us",    "delay_ns",
           "part",  "field",       "offset",     "bit",       "value",  "made_right", "expect"});
  fault_rule r;
  unsigned w = 0;
  if (!s.word("type", {"drop", "duplicate", "reorder", "corrupt", "delay", "mark_congestion", "ecn"}, w))
    s.fail(node, "type: is missing, expected one of drop, duplicate, reorder, corrupt, delay, mark_congestion, ecn");
  r.action = static_cast<fault_action>(std::min(w, fault_actions - 1));
  r.name = "event " + std::to_string(number);
  s.text("name", r.name);
  read_selection(s, r);
  read_hits(s, r);
  check_effect_fields(s, r);
  read_effect(s, r);
  if (const toml::node* e = s.find("expect")) {
    if (!e->is_table()) s.fail(*e, "expect: expected a table with completion and counter");
    const section x(file, title + "expect: ", *e->as_table());
    x.allow({"completion", "counter"});
    if (x.word("completion",
               {"success", "retry_exceeded", "rnr_retry_exceeded", "remote_invalid_request", "remote_access",
                "remote_operation", "bad_response"},
               w))
      x.text("completion", r.completion);
    x.text("counter", r.counter);
  }
  return r;
}

void read_rates(const std::string& file, const toml::node& node, fault_plan& plan) {
  if (!node.is_table())
    throw sim::config_error(file + ":" + std::to_string(node.source().begin.line) + ": rates: not a table");
  const section s(file, "rates: ", *node.as_table());
  s.allow({"drop", "duplicate", "reorder", "corrupt", "delay", "mark_congestion"});
  for (unsigned a = 0; a < fault_actions; ++a) {
    double percent = 0;
    const auto action = static_cast<fault_action>(a);
    if (s.percent(to_string(action), percent) && percent > 0) plan.rules.push_back(rate_rule(action, percent));
  }
}

outage read_outage(const std::string& file, const toml::node& node, std::size_t number) {
  const std::string title = "outage " + std::to_string(number) + ": ";
  if (!node.is_table())
    throw sim::config_error(file + ":" + std::to_string(node.source().begin.line) + ": " + title + "not a table");
  const section s(file, title, *node.as_table());
  s.allow({"port", "down_us", "lasts_us", "every_us", "times"});
  outage o;
  std::uint64_t us = 0;
  s.number("port", 1, 2, o.port);
  if (!s.number("down_us", 0, longest_us, us))
    s.fail(node, "down_us: is missing, expected 0 to " + std::to_string(longest_us));
  o.down_ps = us * sim::ps_per_us;
  if (s.number("lasts_us", 1, longest_us, us)) o.lasts_ps = us * sim::ps_per_us;
  const bool repeats = s.number("every_us", 1, longest_us, us), counted = s.number("times", 1, most_outages, o.times);
  if (repeats) o.every_ps = us * sim::ps_per_us;
  if (repeats != counted)
    s.fail(node, std::string(repeats ? "times" : "every_us") + ": is missing, " + (repeats ? "every_us" : "times") +
                     " is there");
  if (repeats && o.lasts_ps == outage::for_good) s.fail(node, "lasts_us: is missing, every_us is there");
  if (repeats && o.every_ps <= o.lasts_ps)
    s.fail(*s.find("every_us"), "every_us: " + std::to_string(us) + " is not legal, the one before it lasts " +
                                    std::to_string(o.lasts_ps / sim::ps_per_us) + " us; expected more than that");
  return o;
}

}  // namespace

fault_plan parse_fault_plan(const std::string& text, const std::string& name) {
  const toml::table root = sim::read_toml(name, [&] { return toml::parse(text, name); });
  const section s(name, "", root);
  s.allow({"seed", "capture", "rates", "event", "outage"});
  fault_plan plan;
  s.number("seed", 1, std::uint64_t{1} << 62, plan.seed);
  unsigned w = 0;
  if (s.word("capture", {"behind", "before"}, w)) plan.capture_before = w == 1;
  if (const toml::node* events = s.find("event")) {
    const toml::array* list = events->as_array();
    if (list == nullptr) s.fail(*events, "event: expected a list of tables, [[event]]");
    for (std::size_t i = 0; i < list->size(); ++i) plan.rules.push_back(read_event(name, *list->get(i), i + 1));
  }
  if (const toml::node* outages = s.find("outage")) {
    const toml::array* list = outages->as_array();
    if (list == nullptr) s.fail(*outages, "outage: expected a list of tables, [[outage]]");
    for (std::size_t i = 0; i < list->size(); ++i) plan.outages.push_back(read_outage(name, *list->get(i), i + 1));
  }
  if (const toml::node* rates = s.find("rates")) read_rates(name, *rates, plan);
  return plan;
}

fault_plan load_fault_plan(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) throw sim::config_error(file + ": cannot be read");
  return parse_fault_plan(text.str(), file);
}

}  // namespace rnic::fabric
