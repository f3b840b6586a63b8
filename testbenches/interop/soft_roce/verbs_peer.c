// SPDX-License-Identifier: Apache-2.0
// Verbs by command on a real device: what `rnic serve --app script` is to the model, in a smaller form.
//
// Usage: verbs_peer DEVICE GID_INDEX TCP_PORT. Serves one client: lines of `command key=value key=value ...`, answered
// by `ok key=value ...`, or `error ERRNO text`. The words are those of the script application; a list has commas in it,
// an sge is MR:OFFSET:LENGTH:LKEY with the last two optional, and a request is a command of its own.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "verbs_words.h"

enum { most_objects = 256, most_arguments = 48, longest_line = 1 << 17, most_sges = 32 };
enum kind { no_kind, pd_kind, mr_kind, mw_kind, cq_kind, srq_kind, qp_kind, ah_kind };

struct object {
  char name[32];
  enum kind kind;
  void* verbs;
  uint8_t* bytes;  // of a region
  size_t length;
  bool owner;  // of the bytes
};

static struct ibv_context* context;
static int own_gid;
static struct object objects[most_objects];
static struct { char *key, *value; } arguments[most_arguments];
static int argument_count;
static char answer[2 * longest_line];
static size_t answered;
static bool failed;

static void say(const char* format, ...) {
  va_list list;
  va_start(list, format);
  const int n = vsnprintf(answer + answered, sizeof answer - answered, format, list);
  va_end(list);
  if (n > 0) answered += (size_t)n;
  if (answered >= sizeof answer) answered = sizeof answer - 1;
}

static void fail(int error, const char* what) {
  if (failed) return;
  failed = true;
  answered = 0;
  const char* name = error != 0 ? strerrorname_np(error) : "-";
  say("error %s %s", name != NULL ? name : "?", what);
}

static const char* text(const char* key) {
  for (int i = 0; i < argument_count; ++i)
    if (strcmp(arguments[i].key, key) == 0) return arguments[i].value;
  return NULL;
}

static uint64_t number_of(const char* value, const char* key) {
  char* end = NULL;
  errno = 0;
  const uint64_t n = strtoull(value, &end, 0);
  if (end == value || *end != '\0' || errno != 0) fail(0, key);
  return n;
}

static uint64_t number(const char* key, uint64_t otherwise) {
  const char* value = text(key);
  return value != NULL ? number_of(value, key) : otherwise;
}

static int word_of(const char* value, const struct word* table, const char* key) {
  for (; table->text != NULL; ++table)
    if (strcmp(table->text, value) == 0) return table->value;
  fail(0, key);
  return 0;
}

static int words_of(const char* key, const struct word* table) {
  const char* value = text(key);
  int all = 0;
  char copy[256];
  if (value == NULL) return 0;
  snprintf(copy, sizeof copy, "%s", value);
  char* rest = NULL;
  for (char* w = strtok_r(copy, ",", &rest); w != NULL; w = strtok_r(NULL, ",", &rest)) all |= word_of(w, table, key);
  return all;
}

static const char* word_for(const struct word* table, int value) {
  for (; table->text != NULL; ++table)
    if (table->value == value) return table->text;
  return "?";
}

// ---------------------------------------------------------------- objects

static struct object* named(const char* name, size_t length, enum kind kind) {
  for (int i = 0; i < most_objects; ++i)
    if (objects[i].kind == kind && strlen(objects[i].name) == length && memcmp(objects[i].name, name, length) == 0)
      return &objects[i];
  return NULL;
}

static struct object* object(const char* key, enum kind kind) {
  const char* name = text(key);
  struct object* o = name != NULL ? named(name, strlen(name), kind) : NULL;
  if (o == NULL) fail(0, key);
  return o;
}

static void* verbs(const char* key, enum kind kind) {
  struct object* o = object(key, kind);
  return o != NULL ? o->verbs : NULL;
}

static struct object* put(enum kind kind, void* object, const char* what) {
  if (object == NULL) {
    fail(errno, what);
    return NULL;
  }
  const char* name = text("name");
  for (int i = 0; i < most_objects; ++i) {
    if (objects[i].kind != no_kind) continue;
    memset(&objects[i], 0, sizeof objects[i]);
    if (name != NULL)
      snprintf(objects[i].name, sizeof objects[i].name, "%s", name);
    else
      snprintf(objects[i].name, sizeof objects[i].name, "o%d", i);
    objects[i].kind = kind;
    objects[i].verbs = object;
    say(" %s=%s", what, objects[i].name);
    return &objects[i];
  }
  fail(ENOMEM, "objects");
  return NULL;
}

static int destroy(struct object* o) {
  int error = 0;
  switch (o->kind) {
    case pd_kind:
      error = ibv_dealloc_pd(o->verbs);
      break;
    case mr_kind:
      error = ibv_dereg_mr(o->verbs);
      break;
    case mw_kind:
      error = ibv_dealloc_mw(o->verbs);
      break;
    case cq_kind:
      error = ibv_destroy_cq(o->verbs);
      break;
    case srq_kind:
      error = ibv_destroy_srq(o->verbs);
      break;
    case qp_kind:
      error = ibv_destroy_qp(o->verbs);
      break;
    case ah_kind:
      error = ibv_destroy_ah(o->verbs);
      break;
    case no_kind:
      break;
  }
  if (error != 0) return error;
  if (o->owner) free(o->bytes);
  o->kind = no_kind;
  return 0;
}

static void destroy_one(const char* key, enum kind kind) {
  struct object* o = object(key, kind);
  if (failed) return;
  const int error = destroy(o);
  if (error != 0) fail(error, key);
}

static void destroy_all(void) {
  static const enum kind order[] = {ah_kind, qp_kind, mw_kind, srq_kind, cq_kind, mr_kind, pd_kind};
  int left = 0;
  for (size_t k = 0; k < sizeof order / sizeof *order; ++k)
    for (int i = 0; i < most_objects; ++i)
      if (objects[i].kind == order[k] && destroy(&objects[i]) != 0) ++left;
  say(" left=%d", left);
}

// ---------------------------------------------------------------- memory

static void reg_mr(void) {
  struct ibv_pd* pd = verbs("pd", pd_kind);
  const int access = words_of("access", rights);
  struct object* other = text("of") != NULL ? object("of", mr_kind) : NULL;
  if (failed) return;
  const size_t offset = number("offset", 0);
  const size_t length = number("bytes", other != NULL ? other->length - offset : 0);
  if (failed) return;
  if (other != NULL && (offset > other->length || length > other->length - offset)) return fail(0, "bytes");
  uint8_t* bytes = other != NULL ? other->bytes + offset : NULL;
  if (other == NULL && posix_memalign((void**)&bytes, 4096, length) != 0) return fail(ENOMEM, "bytes");
  if (other == NULL) memset(bytes, 0, length);
  struct ibv_mr* mr = ibv_reg_mr(pd, bytes, length, access);
  struct object* o = put(mr_kind, mr, "mr");
  if (o == NULL) return;
  o->bytes = bytes;
  o->length = length;
  o->owner = other == NULL;
  say(" addr=%llu bytes=%zu lkey=%u rkey=%u", (unsigned long long)(uintptr_t)bytes, length, mr->lkey, mr->rkey);
}

/// The part of a region that a command speaks of.
static uint8_t* part(size_t* length) {
  struct object* o = object("mr", mr_kind);
  if (failed) return NULL;
  const size_t offset = number("offset", 0);
  if (offset > o->length) {
    fail(0, "offset");
    return NULL;
  }
  *length = number("bytes", o->length - offset);
  if (*length > o->length - offset) fail(0, "bytes");
  return o->bytes + offset;
}

static void fill(void) {
  size_t length = 0;
  uint8_t* to = part(&length);
  const bool seeded = text("seed") != NULL;
  uint32_t state = (uint32_t)number(seeded ? "seed" : "byte", 0);
  if (failed) return;
  for (size_t i = 0; i < length; ++i) {
    if (seeded) state = state * 1664525u + 1013904223u;
    to[i] = (uint8_t)(seeded ? state >> 24 : state);
  }
}

static void crc32(void) {
  size_t length = 0;
  const uint8_t* from = part(&length);
  if (failed) return;
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < length; ++i) {
    crc ^= from[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
  }
  say(" crc32=%u", ~crc);
}

static void read_bytes(void) {
  size_t length = 0;
  const uint8_t* from = part(&length);
  if (failed || length > longest_line / 2) return fail(0, "bytes");
  say(" hex=");
  for (size_t i = 0; i < length; ++i) say("%02x", from[i]);
}

static void write_bytes(void) {
  size_t room = 0;
  uint8_t* to = part(&room);
  const char* hex = text("hex");
  if (failed || hex == NULL || strlen(hex) / 2 > room) return fail(0, "hex");
  for (size_t i = 0; i < strlen(hex) / 2; ++i) {
    const char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
    to[i] = (uint8_t)strtoul(pair, NULL, 16);
  }
}

static void alloc_mw(void) {
  struct ibv_pd* pd = verbs("pd", pd_kind);
  const int type = number("type", 2) == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
  if (failed) return;
  struct ibv_mw* mw = ibv_alloc_mw(pd, type);
  if (put(mw_kind, mw, "mw") != NULL) say(" rkey=%u", mw->rkey);
}

// ---------------------------------------------------------------- queues

static void create_srq(void) {
  struct ibv_pd* pd = verbs("pd", pd_kind);
  struct ibv_srq_init_attr init = {
      .attr = {.max_wr = (uint32_t)number("max_wr", 16), .max_sge = (uint32_t)number("max_sge", 1)}};
  if (failed) return;
  put(srq_kind, ibv_create_srq(pd, &init), "srq");
}

static void create_qp(void) {
  struct ibv_pd* pd = verbs("pd", pd_kind);
  struct ibv_qp_init_attr init = {0};
  init.qp_type = text("type") != NULL ? word_of(text("type"), types, "type") : IBV_QPT_RC;
  init.send_cq = verbs("send_cq", cq_kind);
  init.recv_cq = verbs(text("recv_cq") != NULL ? "recv_cq" : "send_cq", cq_kind);
  if (text("srq") != NULL) init.srq = verbs("srq", srq_kind);
  init.cap.max_send_wr = (uint32_t)number("max_send_wr", 16);
  init.cap.max_recv_wr = init.srq != NULL ? 0 : (uint32_t)number("max_recv_wr", 16);
  init.cap.max_send_sge = (uint32_t)number("max_send_sge", 1);
  init.cap.max_recv_sge = (uint32_t)number("max_recv_sge", 1);
  init.cap.max_inline_data = (uint32_t)number("max_inline_data", 0);
  if (failed) return;
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  if (put(qp_kind, qp, "qp") != NULL) say(" qpn=%u max_inline_data=%u", qp->qp_num, init.cap.max_inline_data);
}

/// A GID as 32 hexadecimal digits.
static bool read_path(struct ibv_ah_attr* path) {
  const char* gid = text("dgid");
  if (gid == NULL) return false;
  if (strlen(gid) != 32) fail(0, "dgid");
  for (int i = 0; i < 16 && !failed; ++i) {
    const char pair[3] = {gid[2 * i], gid[2 * i + 1], 0};
    path->grh.dgid.raw[i] = (uint8_t)strtoul(pair, NULL, 16);
  }
  path->is_global = 1;
  path->grh.sgid_index = (uint8_t)number("sgid_index", (uint64_t)own_gid);
  path->grh.hop_limit = (uint8_t)number("hop_limit", 64);
  path->grh.traffic_class = (uint8_t)number("traffic_class", 0);
  path->sl = (uint8_t)number("sl", 0);
  path->port_num = 1;
  return true;
}

#define TAKE(name, bit)                                  \
  if (text(#name) != NULL) {                             \
    attr.name = (__typeof__(attr.name))number(#name, 0); \
    mask |= bit;                                         \
  }

static void modify_qp(void) {
  struct ibv_qp* qp = verbs("qp", qp_kind);
  struct ibv_qp_attr attr = {0};
  int mask = 0;
  if (text("qp_state") != NULL) {
    attr.qp_state = (enum ibv_qp_state)word_of(text("qp_state"), states, "qp_state");
    mask |= IBV_QP_STATE;
  }
  if (text("qp_access_flags") != NULL) {
    attr.qp_access_flags = (unsigned)words_of("qp_access_flags", rights);
    mask |= IBV_QP_ACCESS_FLAGS;
  }
  if (text("path_mtu") != NULL) {
    const uint64_t bytes = number("path_mtu", 0);
    attr.path_mtu = IBV_MTU_256;
    while (attr.path_mtu < IBV_MTU_4096 && (128ull << attr.path_mtu) < bytes) ++attr.path_mtu;
    mask |= IBV_QP_PATH_MTU;
  }
  TAKE(qkey, IBV_QP_QKEY)
  TAKE(rq_psn, IBV_QP_RQ_PSN)
  TAKE(sq_psn, IBV_QP_SQ_PSN)
  TAKE(dest_qp_num, IBV_QP_DEST_QPN)
  TAKE(pkey_index, IBV_QP_PKEY_INDEX)
  TAKE(port_num, IBV_QP_PORT)
  TAKE(max_rd_atomic, IBV_QP_MAX_QP_RD_ATOMIC)
  TAKE(max_dest_rd_atomic, IBV_QP_MAX_DEST_RD_ATOMIC)
  TAKE(min_rnr_timer, IBV_QP_MIN_RNR_TIMER)
  TAKE(timeout, IBV_QP_TIMEOUT)
  TAKE(retry_cnt, IBV_QP_RETRY_CNT)
  TAKE(rnr_retry, IBV_QP_RNR_RETRY)
  if (read_path(&attr.ah_attr)) mask |= IBV_QP_AV;
  if (failed) return;
  const int error = ibv_modify_qp(qp, &attr, mask);
  if (error != 0) fail(error, "modify_qp");
}

static void query_qp(void) {
  struct ibv_qp* qp = verbs("qp", qp_kind);
  struct ibv_qp_attr attr = {0};
  struct ibv_qp_init_attr init;
  if (failed) return;
  const int error = ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
  if (error != 0) return fail(error, "query_qp");
  say(" qp_state=%s", word_for(states, attr.qp_state));
}

static void create_ah(void) {
  struct ibv_pd* pd = verbs("pd", pd_kind);
  struct ibv_ah_attr path = {0};
  if (!read_path(&path)) fail(0, "dgid");
  if (failed) return;
  put(ah_kind, ibv_create_ah(pd, &path), "ah");
}

// ---------------------------------------------------------------- requests

static int read_sges(struct ibv_sge* list) {
  const char* at = text("sge");
  int count = 0;
  while (at != NULL && *at != '\0' && !failed) {
    char one[128];
    const size_t n = strcspn(at, ",");
    snprintf(one, sizeof one, "%.*s", (int)n, at);
    at += n + (at[n] == ',' ? 1 : 0);
    char* rest = NULL;
    const char* name = strtok_r(one, ":", &rest);
    const char* offset = strtok_r(NULL, ":", &rest);
    const char* length = strtok_r(NULL, ":", &rest);
    const char* lkey = strtok_r(NULL, ":", &rest);
    struct object* o = name != NULL ? named(name, strlen(name), mr_kind) : NULL;
    if (o == NULL || count == most_sges) {
      fail(0, "sge");
      return 0;
    }
    const uint64_t from = offset != NULL ? number_of(offset, "sge") : 0;
    list[count].addr = (uintptr_t)o->bytes + from;
    list[count].length = (uint32_t)(length != NULL ? number_of(length, "sge") : o->length - from);
    list[count].lkey = lkey != NULL ? (uint32_t)number_of(lkey, "sge") : ((struct ibv_mr*)o->verbs)->lkey;
    ++count;
  }
  return count;
}

static void post_send(void) {
  struct ibv_qp* qp = verbs("qp", qp_kind);
  struct ibv_sge list[most_sges];
  struct ibv_send_wr wr = {0}, *bad = NULL;
  wr.opcode = (enum ibv_wr_opcode)word_of(text("opcode") != NULL ? text("opcode") : "?", opcodes, "opcode");
  wr.wr_id = number("wr_id", 0);
  wr.send_flags = (unsigned)words_of("flags", flags);
  wr.sg_list = list;
  wr.num_sge = read_sges(list);
  if (failed) return;
  if (wr.opcode == IBV_WR_SEND_WITH_IMM || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
    wr.imm_data = htonl((uint32_t)number("imm", 0));
  if (wr.opcode == IBV_WR_SEND_WITH_INV || wr.opcode == IBV_WR_LOCAL_INV)
    wr.invalidate_rkey = (uint32_t)number("invalidate_rkey", 0);
  if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic.remote_addr = number("remote_addr", 0);
    wr.wr.atomic.rkey = (uint32_t)number("rkey", 0);
    wr.wr.atomic.compare_add = number("compare_add", 0);
    wr.wr.atomic.swap = number("swap", 0);
  } else if (wr.opcode == IBV_WR_BIND_MW) {
    struct object* mr = object("mr", mr_kind);
    wr.bind_mw.mw = verbs("mw", mw_kind);
    wr.bind_mw.rkey = (uint32_t)number("rkey", 0);
    if (failed) return;
    wr.bind_mw.bind_info.mr = mr->verbs;
    wr.bind_mw.bind_info.addr = number("addr", 0);
    wr.bind_mw.bind_info.length = number("length", 0);
    wr.bind_mw.bind_info.mw_access_flags = (unsigned)words_of("access", rights);
  } else if (qp->qp_type == IBV_QPT_UD) {
    wr.wr.ud.ah = verbs("ah", ah_kind);
    wr.wr.ud.remote_qpn = (uint32_t)number("remote_qpn", 0);
    wr.wr.ud.remote_qkey = (uint32_t)number("remote_qkey", 0);
  } else {
    wr.wr.rdma.remote_addr = number("remote_addr", 0);
    wr.wr.rdma.rkey = (uint32_t)number("rkey", 0);
  }
  if (failed) return;
  const int error = ibv_post_send(qp, &wr, &bad);
  if (error != 0) fail(error, "post_send");
  // The next bind is told the key of this one: with a request of a queue pair that is the application's to write down.
  else if (wr.opcode == IBV_WR_BIND_MW) wr.bind_mw.mw->rkey = wr.bind_mw.rkey;
}

static void post_receive(bool shared) {
  void* queue = verbs(shared ? "srq" : "qp", shared ? srq_kind : qp_kind);
  struct ibv_sge list[most_sges];
  struct ibv_recv_wr wr = {0}, *bad = NULL;
  wr.wr_id = number("wr_id", 0);
  wr.sg_list = list;
  wr.num_sge = read_sges(list);
  if (failed) return;
  for (uint64_t i = number("copies", 1); i > 0; --i) {
    const int error = shared ? ibv_post_srq_recv(queue, &wr, &bad) : ibv_post_recv(queue, &wr, &bad);
    if (error != 0) return fail(error, "post_recv");
  }
}

static uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void poll_completions(void) {
  struct ibv_cq* cq = verbs("cq", cq_kind);
  const uint64_t most = number("count", 16), end = now_ms() + number("timeout_ms", 0);
  const uint64_t least = number("at_least", text("timeout_ms") != NULL ? 1 : 0);
  if (failed) return;
  for (uint64_t found = 0;;) {
    struct ibv_wc wc;
    const int n = found < most ? ibv_poll_cq(cq, 1, &wc) : 0;
    if (n < 0) return fail(EIO, "poll_cq");
    if (n == 0) {
      if (found >= least || now_ms() >= end) return;
      usleep(500);
      continue;
    }
    ++found;
    say(" | wr_id=%llu status=%s qpn=%u", (unsigned long long)wc.wr_id, word_for(statuses, wc.status), wc.qp_num);
    if (wc.status != IBV_WC_SUCCESS) continue;
    say(" opcode=%s byte_len=%u src_qp=%u", word_for(done, wc.opcode), wc.byte_len, wc.src_qp);
    if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) say(" imm=%u", ntohl(wc.imm_data));
    if ((wc.wc_flags & IBV_WC_WITH_INV) != 0) say(" invalidated_rkey=%u", wc.invalidated_rkey);
  }
}

static void async_event(void) {
  struct pollfd look = {context->async_fd, POLLIN, 0};
  struct ibv_async_event e;
  if (poll(&look, 1, (int)number("timeout_ms", 0)) <= 0 || ibv_get_async_event(context, &e) != 0)
    return say(" event=none");
  say(" event=%s", word_for(events, e.event_type));
  ibv_ack_async_event(&e);
}

// ---------------------------------------------------------------- the line

static void alloc_pd(void) { put(pd_kind, ibv_alloc_pd(context), "pd"); }
static void dealloc_pd(void) { destroy_one("pd", pd_kind); }
static void dereg_mr(void) { destroy_one("mr", mr_kind); }
static void dealloc_mw(void) { destroy_one("mw", mw_kind); }
static void create_cq(void) { put(cq_kind, ibv_create_cq(context, (int)number("entries", 64), NULL, NULL, 0), "cq"); }
static void destroy_cq(void) { destroy_one("cq", cq_kind); }
static void destroy_srq(void) { destroy_one("srq", srq_kind); }
static void destroy_qp(void) { destroy_one("qp", qp_kind); }
static void destroy_ah(void) { destroy_one("ah", ah_kind); }
static void post_recv(void) { post_receive(false); }
static void post_srq_recv(void) { post_receive(true); }
static void wait_a_while(void) { usleep((useconds_t)number("timeout_ms", 0) * 1000); }

static const struct {
  const char* name;
  void (*run)(void);
} commands[] = {{"alloc_pd", alloc_pd},
                {"dealloc_pd", dealloc_pd},
                {"reg_mr", reg_mr},
                {"dereg_mr", dereg_mr},
                {"fill", fill},
                {"crc32", crc32},
                {"read", read_bytes},
                {"write", write_bytes},
                {"alloc_mw", alloc_mw},
                {"dealloc_mw", dealloc_mw},
                {"create_cq", create_cq},
                {"destroy_cq", destroy_cq},
                {"poll", poll_completions},
                {"create_srq", create_srq},
                {"destroy_srq", destroy_srq},
                {"create_qp", create_qp},
                {"modify_qp", modify_qp},
                {"query_qp", query_qp},
                {"destroy_qp", destroy_qp},
                {"create_ah", create_ah},
                {"destroy_ah", destroy_ah},
                {"post_send", post_send},
                {"post_recv", post_recv},
                {"post_srq_recv", post_srq_recv},
                {"async_event", async_event},
                {"wait", wait_a_while},
                {"destroy_all", destroy_all}};

static void obey(const char* command) {
  for (size_t i = 0; i < sizeof commands / sizeof *commands; ++i)
    if (strcmp(commands[i].name, command) == 0) return commands[i].run();
  fail(0, "there is no such command");
}

static void answer_to(char* line, FILE* out) {
  char* rest = NULL;
  const char* command = strtok_r(line, " \r\n", &rest);
  argument_count = 0;
  failed = false;
  answered = 0;
  say("ok");
  if (command == NULL) return;
  for (char* a = strtok_r(NULL, " \r\n", &rest); a != NULL; a = strtok_r(NULL, " \r\n", &rest)) {
    char* equal = strchr(a, '=');
    if (equal == NULL || argument_count == most_arguments) {
      fail(0, "arguments");
      break;
    }
    *equal = '\0';
    arguments[argument_count].key = a;
    arguments[argument_count++].value = equal + 1;
  }
  if (!failed) obey(command);
  fprintf(out, "%s\n", answer);
  fflush(out);
}

static int open_device(const char* name) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  for (int i = 0; list != NULL && list[i] != NULL; ++i)
    if (strcmp(ibv_get_device_name(list[i]), name) == 0) context = ibv_open_device(list[i]);
  if (context == NULL) fprintf(stderr, "verbs_peer: cannot open %s\n", name);
  return context != NULL ? 0 : 1;
}

int main(int argc, char* argv[]) {
  if (argc != 4) {
    fprintf(stderr, "usage: verbs_peer DEVICE GID_INDEX TCP_PORT\n");
    return 2;
  }
  own_gid = atoi(argv[2]);
  if (open_device(argv[1]) != 0) return 1;
  const struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[3]))};
  const int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, (const struct sockaddr*)&here, sizeof here) != 0 || listen(listener, 1) != 0) {
    perror("verbs_peer");
    return 1;
  }
  const int client = accept(listener, NULL, NULL);
  FILE* in = fdopen(client, "r");
  FILE* out = fdopen(dup(client), "w");
  static char line[longest_line];
  while (in != NULL && out != NULL && fgets(line, sizeof line, in) != NULL) answer_to(line, out);
  answered = 0;
  destroy_all();
  return 0;
}
