# SPDX-License-Identifier: Apache-2.0
"""What processes of multiprocessing run: in a module of its own, which spawn and forkserver import."""

import numpy
import wherry


def publish(address, number):
    with wherry.Publisher(pool_bytes=1 << 20) as publisher:
        publisher.connect(address, 60)
        frame = publisher.loan((10, 100), "i4")
        frame[:] = numpy.full((10, 100), number)
        publisher.publish(frame, timeout=60)
