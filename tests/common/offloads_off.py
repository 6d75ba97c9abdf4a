# SPDX-License-Identifier: Apache-2.0
"""offloads_off.py NAME: this interface sends each packet as it will arrive: no larger than its MTU, with its checksum."""

import array
import fcntl
import socket
import struct
import sys

SIOCETHTOOL = 0x8946
SET_SEGMENTATION, SET_SCATTER, SET_CHECKSUM, SET_GENERIC_SEGMENTATION = 0x1F, 0x19, 0x17, 0x24

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    for command in (SET_SEGMENTATION, SET_GENERIC_SEGMENTATION, SET_SCATTER, SET_CHECKSUM):
        value = array.array("I", [command, 0])
        fcntl.ioctl(control, SIOCETHTOOL, struct.pack("16sP", sys.argv[1].encode(), value.buffer_info()[0]))
