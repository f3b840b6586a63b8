/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD for udpong, which by itself cannot run on Soft-RoCE, nor on a slow machine.
 *
 * Own path: datagram rsockets send to themselves by LID, an address that Ethernet ports do not have.
 *
 * rsocket.c (ds_add_qp_dest, in every rdma-core up to 64) makes an address handle for its own queue pair out of the port's
 * LID and nothing else. On RoCE the kernel refuses address handles without a GRH (core/verbs.c, rdma_check_ah_attr:
 * EINVAL), so rconnect(), and a server's answer to its first client, fail before any packet. Here such a handle gets the
 * GID of row OWN_GID_INDEX, to which it is a way as well; everything else is left as it is.
 *
 * Timeout: rpoll() of rdma-core before 63 counts itself among the threads that sleep, finds that its time is over already
 * (of udpong's one millisecond, when the machine is busy), and returns without counting itself out. The next event then
 * waits for ever until that sleeper is awake, and all threads with it. Here no thread sleeps in rpoll(): it is asked
 * without waiting, again and again until the time is over, which does not go that way. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr) {
  struct ibv_ah *(*create)(struct ibv_pd *, struct ibv_ah_attr *) = dlsym(RTLD_NEXT, "ibv_create_ah");
  const char *row = getenv("OWN_GID_INDEX");
  struct ibv_ah_attr own = *attr;
  if (create == NULL) return NULL;
  if (attr->is_global || row == NULL) return create(pd, attr);
  own.is_global = 1;
  own.grh.sgid_index = (uint8_t)atoi(row);
  own.grh.hop_limit = 64;
  if (ibv_query_gid(pd->context, attr->port_num, own.grh.sgid_index, &own.grh.dgid) != 0) return NULL;
  return create(pd, &own);
}

static long now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout_ms) {
  const struct timespec between = {0, 50000};
  int (*look)(struct pollfd *, nfds_t, int) = dlsym(RTLD_NEXT, "rpoll");
  const long end = now_us() + timeout_ms * 1000L;
  for (;;) {
    const int ready = look == NULL ? -1 : look(fds, nfds, 0);
    if (ready != 0 || (timeout_ms >= 0 && now_us() >= end)) return ready;
    nanosleep(&between, NULL);
  }
}
