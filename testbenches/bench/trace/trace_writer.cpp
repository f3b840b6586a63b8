// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/trace_writer.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

namespace rnic::bench {

namespace {

constexpr std::size_t longest_text = 512;                   // of a name
constexpr std::size_t longest_json = 6 * longest_text + 2;  // of it: \u0001 each
constexpr std::uint32_t rows_of_a_block = 1000;

static_assert(longest_json + trace_writer::most_details + 500 < trace_file::most_bytes, "an event has room");

char* put(char* at, std::string_view text) {
  std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

template <std::size_t N>
char* put(char* at, const char (&text)[N]) {
  std::memcpy(at, text, N - 1);
  return at + N - 1;
}

constexpr char pairs[] =
    "000102030405060708091011121314151617181920212223242526272829303132333435363738394041424344454647484950515253545556"
    "57"
    "5859606162636465666768697071727374757677787980818283848586878889909192939495969798"
    "99";

static_assert(sizeof pairs == 201, "two digits each of 0 to 99");

char* put(char* at, std::uint64_t number) {
  if (number >= 100) return std::to_chars(at, at + 20, number).ptr;
  std::memcpy(at, pairs + 2 * number + (number < 10 ? 1 : 0), 2);
  return at + (number < 10 ? 1 : 2);
}

/// JSON text.
std::string quoted(const std::string& text) {
  return nlohmann::json(text.substr(0, longest_text)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// Microseconds, exactly.
char* put_time(char* at, sim::time_ps ps) {
  const sim::time_ps us = ps / sim::ps_per_us;
  at = put(at, us);
  auto rest = static_cast<std::uint32_t>(ps - us * sim::ps_per_us);
  if (rest == 0) return at;
  *at = '.';
  for (unsigned digit = 5; digit <= 5; digit -= 2, rest /= 100) std::memcpy(at + digit, pairs + 2 * (rest % 100), 2);
  at += 6;
  while (*at == '0') --at;
  return at + 1;
}

/// To the nearest nanosecond, in picoseconds.
sim::time_ps whole_ns(sim::time_ps ps) { return (ps + sim::ps_per_ns / 2) / sim::ps_per_ns * sim::ps_per_ns; }

}  // namespace

trace_writer::trace_writer(const std::string& file, const std::string& title) : file_(file) {
  file_.add("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"title\":" + quoted(title) + "},\"traceEvents\":[");
}

char* trace_writer::begin_event() {
  char* const at = file_.room();
  return put(at, events_++ == 0 ? "\n{" : ",\n{");
}

void trace_writer::end_event(char* at) {
  *at++ = '}';
  file_.advance(at);
}

trace_writer::process trace_writer::add_process(const std::string& name) {
  const process p = ++processes_;
  char* at = put(begin_event(), "\"ph\":\"M\",\"name\":\"process_name\",\"pid\":");
  at = put(put(put(at, std::uint64_t{p}), ",\"args\":{\"name\":"), quoted(name));
  end_event(put(at, "}"));
  at = put(begin_event(), "\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":");
  at = put(put(put(at, std::uint64_t{p}), ",\"args\":{\"sort_index\":"), std::uint64_t{p});
  end_event(put(at, "}"));
  return p;
}

trace_writer::block trace_writer::add_block(process of, const std::string& name) {
  tracks_.emplace_back();
  tracks_.back().of = of;
  tracks_.back().name = name;
  tracks_.back().number = static_cast<std::uint32_t>(tracks_.size());
  return static_cast<block>(tracks_.size() - 1);
}

void trace_writer::name_thread(process of, std::uint32_t thread, const std::string& name, std::uint32_t order) {
  for (const bool is_name : {true, false}) {
    char* at = put(begin_event(), "\"ph\":\"M\",\"name\":\"thread_");
    at = put(put(at, is_name ? "name" : "sort_index"), "\",\"pid\":");
    at = put(put(put(at, std::uint64_t{of}), ",\"tid\":"), std::uint64_t{thread});
    at = put(put(at, ",\"args\":{\""), is_name ? "name\":" : "sort_index\":");
    at = is_name ? put(at, quoted(name)) : put(at, std::uint64_t{order});
    end_event(put(at, "}"));
  }
}

std::uint32_t trace_writer::thread_of(track& t, std::size_t row) {
  while (t.threads.size() <= row) {
    t.threads.push_back(++threads_);
    const std::size_t nth = t.threads.size();
    name_thread(t.of, threads_, nth == 1 ? t.name : t.name + " #" + std::to_string(nth),
                t.number * rows_of_a_block + static_cast<std::uint32_t>(nth));
  }
  return t.threads[row];
}

trace_writer::kind trace_writer::add_kind(block on, const std::string& name) {
  kinds_.push_back({on, quoted(name), {}});
  return static_cast<kind>(kinds_.size() - 1);
}

const std::string& trace_writer::head_of(known_kind& k, track& t, std::size_t row) {
  if (row >= k.heads.size()) k.heads.resize(row + 1);
  std::string& head = k.heads[row];
  if (head.empty())
    head = ",\n{\"ph\":\"X\",\"pid\":" + std::to_string(t.of) + ",\"tid\":" + std::to_string(thread_of(t, row)) +
           ",\"name\":" + k.name + ",\"ts\":";
  return head;
}

trace_writer::place trace_writer::slice(kind of, sim::time_ps begin, sim::time_ps end, std::string_view details) {
  if (end <= begin || begin < origin_) return {};
  known_kind& k = kinds_[of];
  track& t = tracks_[k.on];
  const std::size_t row = t.rows.place(begin, end);
  if (row == lanes::most) {
    slice_beside_rows(k, t, begin, end, details);
    return {};
  }
  const std::string& head = head_of(k, t, row);
  ++events_;
  const sim::time_ps shown = whole_ns(begin - origin_);
  char* at = put_time(put(file_.room(), head), shown);
  at = put_time(put(at, ",\"dur\":"), whole_ns(end - origin_) - shown);
  at = put(put_exact(put(at, ",\"args\":{"), begin, end), details);
  file_.advance(put(at, "}}"));
  return {t.of, t.threads[row], begin};
}

/// What whole nanoseconds leave out, as JSON.
char* trace_writer::put_exact(char* at, sim::time_ps begin, sim::time_ps end) const {
  const sim::time_ps from = begin - origin_, shown = whole_ns(from);
  at = put(put(put(at, "\"ps\":"), end - begin), ",");
  if (from == shown) return at;
  at = from < shown ? put(at, "\"off\":-") : put(at, "\"off\":");
  return put(put(at, from < shown ? shown - from : from - shown), ",");
}

/// An asynchronous event of the first row.
void trace_writer::slice_beside_rows(const known_kind& k, track& t, sim::time_ps begin, sim::time_ps end,
                                     std::string_view details) {
  const std::uint32_t thread = thread_of(t, 0);
  ++async_;
  for (const bool first : {true, false}) {
    char* at = put(begin_event(), "\"ph\":\"");
    at = put(put(at, first ? "b" : "e"), "\",\"pid\":");
    at = put(put(put(at, std::uint64_t{t.of}), ",\"tid\":"), std::uint64_t{thread});
    at = put(put(put(at, ",\"cat\":\"overlapping\",\"id\":"), async_), ",\"name\":");
    at = put_time(put(put(at, k.name), ",\"ts\":"), whole_ns((first ? begin : end) - origin_));
    if (first) at = put(put(put_exact(put(at, ",\"args\":{"), begin, end), details), "}");
    end_event(at);
  }
}

void trace_writer::arrow(const place& from, const place& to) {
  if (from.row == 0 || to.row == 0) return;
  ++arrows_;
  for (const place* p : {&from, &to}) {
    char* at = put(begin_event(), p == &from ? "\"ph\":\"s\",\"id\":" : "\"ph\":\"f\",\"bp\":\"e\",\"id\":");
    at = put(put(at, arrows_), ",\"pid\":");
    at = put(put(put(at, std::uint64_t{p->of}), ",\"tid\":"), std::uint64_t{p->row});
    at = put_time(put(at, ",\"ts\":"), whole_ns(p->begin - origin_));
    end_event(put(at, ",\"cat\":\"frame\",\"name\":\"frame\""));
  }
}

trace_writer::gauge trace_writer::add_gauge(process of, const std::string& name) {
  gauges_.push_back(",\n{\"ph\":\"C\",\"pid\":" + std::to_string(of) + ",\"name\":" + quoted(name) + ",\"ts\":");
  return static_cast<gauge>(gauges_.size() - 1);
}

void trace_writer::counter(gauge of, sim::time_ps when, std::uint64_t value) {
  ++events_;
  char* at = put_time(put(file_.room(), gauges_[of]), when - std::min(when, origin_));
  at = put(put(at, ",\"args\":{\"value\":"), value);
  file_.advance(put(at, "}}"));
}

void trace_writer::close() {
  file_.add("\n]}\n");
  file_.close();
}

}  // namespace rnic::bench
