/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that include <wherry.h>, as C programs name their libraries. */
#include <wherry/wherry.h>
