# SPDX-License-Identifier: Apache-2.0
# viewer.py: takes the frames of camera.py and prints the shape, the dtype and the mean of each.
import wherry

with wherry.Subscriber() as viewer:
    viewer.connect("wherry://0:2000")
    for message in viewer:  # until the camera ends
        frame = message.array  # read-only, where the camera wrote it
        print(frame.shape, frame.dtype, frame.mean())
        del frame, message  # gives the memory back to the camera
