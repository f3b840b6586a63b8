// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/trace_writer.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

namespace rnic::bench {

namespace {

constexpr std::size_t longest_text = 512;  // of a name or details, so that an event fits into trace_file::most_bytes
constexpr std::uint32_t rows_of_a_block = 1000;

char* put(char* at, std::string_view text) {
  const std::size_t n = std::min(text.size(), 3 * longest_text);
  std::memcpy(at, text.data(), n);
  return at + n;
}

char* put(char* at, std::uint64_t number) { return std::to_chars(at, at + 20, number).ptr; }

constexpr char pairs[] =
    "000102030405060708091011121314151617181920212223242526272829303132333435363738394041424344454647484950515253545556"
    "57"
    "5859606162636465666768697071727374757677787980818283848586878889909192939495969798"
    "99";

static_assert(sizeof pairs == 201, "two digits each of 0 to 99");

/// Microseconds, exactly.
char* put_time(char* at, sim::time_ps ps) {
  at = put(at, ps / sim::ps_per_us);
  auto rest = static_cast<std::uint32_t>(ps % sim::ps_per_us);
  if (rest == 0) return at;
  *at = '.';
  for (unsigned digit = 5; digit <= 5; digit -= 2, rest /= 100) std::memcpy(at + digit, pairs + 2 * (rest % 100), 2);
  at += 6;
  while (*at == '0') --at;
  return at + 1;
}

}  // namespace

std::string trace_writer::quoted(const std::string& text) {
  return nlohmann::json(text.substr(0, longest_text)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

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

trace_writer::place trace_writer::slice(block on, std::string_view name, sim::time_ps begin, sim::time_ps end,
                                        std::string_view details) {
  if (end <= begin || begin < origin_) return {};
  track& t = tracks_[on];
  const std::size_t row = t.rows.place(begin, end);
  const bool has_row = row != lanes::most;
  const std::uint32_t thread = thread_of(t, has_row ? row : 0);
  if (!has_row) ++async_;
  const char* const kinds[] = {"\"ph\":\"e\",\"pid\":", "\"ph\":\"b\",\"pid\":", "\"ph\":\"X\",\"pid\":"};
  for (const bool first : {true, false}) {
    char* at = put(begin_event(), kinds[has_row ? 2 : first ? 1 : 0]);
    at = put(put(put(at, std::uint64_t{t.of}), ",\"tid\":"), std::uint64_t{thread});
    if (!has_row) at = put(put(at, ",\"cat\":\"overlapping\",\"id\":"), async_);
    at = put_time(put(at, ",\"ts\":"), (first ? begin : end) - origin_);
    if (has_row) at = put_time(put(at, ",\"dur\":"), end - begin);
    at = put(put(at, ",\"name\":"), name);
    if (first) at = put(put(put(at, ",\"args\":{"), details), "}");
    end_event(at);
    if (has_row) break;
  }
  return has_row ? place{t.of, thread, begin} : place{};
}

void trace_writer::arrow(const place& from, const place& to) {
  if (from.row == 0 || to.row == 0) return;
  ++arrows_;
  for (const place* p : {&from, &to}) {
    char* at = put(begin_event(), p == &from ? "\"ph\":\"s\",\"id\":" : "\"ph\":\"f\",\"bp\":\"e\",\"id\":");
    at = put(put(at, arrows_), ",\"pid\":");
    at = put(put(put(at, std::uint64_t{p->of}), ",\"tid\":"), std::uint64_t{p->row});
    at = put_time(put(at, ",\"ts\":"), p->begin - origin_);
    end_event(put(at, ",\"cat\":\"frame\",\"name\":\"frame\""));
  }
}

void trace_writer::counter(process of, std::string_view name, sim::time_ps when, std::uint64_t value) {
  if (when < origin_) when = origin_;
  char* at = put(begin_event(), "\"ph\":\"C\",\"pid\":");
  at = put(put(put(at, std::uint64_t{of}), ",\"name\":"), name);
  at = put_time(put(at, ",\"ts\":"), when - origin_);
  at = put(put(at, ",\"args\":{\"value\":"), value);
  end_event(put(at, "}"));
}

void trace_writer::close() {
  file_.add("\n]}\n");
  file_.close();
}

}  // namespace rnic::bench
