# SPDX-License-Identifier: Apache-2.0
# camera.py COUNT: waits for COUNT viewers (viewer.py) and publishes ten frames, which none of them copies.
import sys

import wherry

with wherry.Publisher(pool_bytes=64 << 20) as camera:
    camera.listen("wherry://*:2000")
    camera.admit(int(sys.argv[1]))
    for number in range(10):
        frame = camera.loan((480, 640, 3), "uint8")  # an ndarray in shared memory
        frame[:] = number  # once, where it will be read
        camera.publish(frame)
        del frame
