/* SPDX-License-Identifier: Apache-2.0 */
/* A program as they were written for the interface's original header: it includes nothing else for errno, sleep, select
 * and file descriptors, uses the older names, waits for its peer as long as that is refused, and takes errno as it is
 * at the end for the outcome. */
#include <scif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#ifndef __SCIF_H__
#error "programs ask for the guard"
#endif

#define PAGE_SIZE 0x1000

#define IS(name, value) typedef char name##_is[(name) == (value) ? 1 : -1]
#define TEN_ARE(group, first) \
  IS(group##_0, first);       \
  IS(group##_1, first + 1);   \
  IS(group##_2, first + 2);   \
  IS(group##_3, first + 3);   \
  IS(group##_4, first + 4);   \
  IS(group##_5, first + 5);   \
  IS(group##_6, first + 6);   \
  IS(group##_7, first + 7);   \
  IS(group##_8, first + 8);   \
  IS(group##_9, first + 9)
TEN_ARE(SCIF_COI_PORT, 40);
TEN_ARE(SCIF_OFED_PORT, 60);
TEN_ARE(SCIF_NETDEV_PORT, 80);
TEN_ARE(SCIF_RAS_PORT, 100);
TEN_ARE(SCIF_PM_PORT, 120);
TEN_ARE(SCIF_BT_PORT, 130);
TEN_ARE(SCIF_MYO_PORT, 1025);
TEN_ARE(SCIF_ST_PORT, 1044);
IS(MPSSD_MONRECV, 160);
IS(MIC_NOTIFY, 161);
IS(MPSSD_CRED, 162);
IS(MPSSD_MONSEND, 163);
IS(MPSSD_MICCTRL, 164);
IS(MPSSD_RESV5, 165);
IS(MPSSD_RESV6, 166);
IS(MPSSD_RESV7, 167);
IS(MPSSD_RESV8, 168);
IS(MPSSD_RESV9, 169);
IS(SCIF_COSM_LISTEN_PORT, 201);
IS(SCIF_ADMIN_PORT_END, 1024);
IS(SCIF_PORT_RSVD, 1088);

static MICACCESSAPI int failed(const char* call) {
  printf("%s failed with error %d\n", call, errno);
  return 1;
}

/* Sends a word and waits for the peer's. */
static int barrier(scif_epd_t epd) {
  int control_msg = 0;
  fd_set readable;
  if (scif_send(epd, &control_msg, sizeof(control_msg), SEND_BLOCK) <= 0) return failed("scif_send");
  FD_ZERO(&readable);
  FD_SET(scif_get_fd(epd), &readable);
  if (select(scif_get_fd(epd) + 1, &readable, NULL, NULL, NULL) != 1) return failed("select");
  if (scif_recv(epd, &control_msg, sizeof(control_msg), RECV_BLOCK) <= 0) return failed("scif_recv");
  return 0;
}

/* Registers a buffer and leaves without an error behind. A side that closes before its peer has unregistered leaves it an
 * error. */
static int exchange(scif_epd_t epd) {
  void* buffer = NULL;
  off_t offset;

  errno = 0;
  if (posix_memalign(&buffer, PAGE_SIZE, PAGE_SIZE) != 0) return failed("posix_memalign");
  memset(buffer, 0xad, PAGE_SIZE);
  offset = scif_register(epd, buffer, PAGE_SIZE, 0x80000, SCIF_PROT_READ | SCIF_PROT_WRITE, SCIF_MAP_FIXED);
  if (offset < 0) return failed("scif_register");
  if (barrier(epd) != 0) return 1;
  if (scif_unregister(epd, offset, PAGE_SIZE) != 0) return failed("scif_unregister");
  if (barrier(epd) != 0) return 1;
  free(buffer);
  if (scif_close(epd) != 0) return failed("scif_close");
  return errno == 0 ? 0 : failed("nothing");
}

static int connect_to(struct portID peer) {
  scif_epd_t epd = scif_open();
  if (epd == SCIF_OPEN_FAILED) return failed("scif_open");
  while (scif_connect(epd, &peer) < 0) {
    if (errno != ECONNREFUSED) return failed("scif_connect");
    usleep(1000);
  }
  return exchange(epd);
}

static int accept_one(scif_epd_t listener) {
  portID_t peer;
  scif_epd_t epd;
  if (scif_accept(listener, &peer, &epd, ACCEPT_SYNC) < 0) return failed("scif_accept");
  return exchange(epd);
}

int main(void) {
  struct portID to = {0, 0};
  scif_epd_t listener = scif_open();
  int status = 1;
  int port = scif_bind(listener, 0);
  if (port < 0) return failed("scif_bind");
  to.port = (uint16_t)port;
  if (fork() == 0) {
    close(listener);
    _exit(connect_to(to));
  }
  if (scif_listen(listener, 5) != 0 || accept_one(listener) != 0) return 1;
  wait(&status);
  return status;
}
