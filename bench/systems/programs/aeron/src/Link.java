// SPDX-License-Identifier: Apache-2.0

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/** Both directions of messages of one process. */
final class Link implements AutoCloseable, FragmentHandler {
    static final int TO_RECEIVER = 1;
    static final int BACK = 2;
    private static final int FRAGMENTS = 64;

    private final Aeron aeron;
    private final ExclusivePublication publication;
    private final Subscription subscription;
    private final boolean crowded;
    private final Touch touch = new Touch();
    private final UnsafeBuffer message = new UnsafeBuffer(0, 0);
    private byte[] bytes = {};
    private long received;
    private long sum;
    private boolean touched;

    Link(final Aeron aeron, final int from, final int to, final boolean crowded) {
        this.aeron = aeron;
        this.crowded = crowded;
        // Long terms, since at the end of each the driver must have run; but a log is three of them, for each sender.
        final String channel = "aeron:ipc?term-length=" + (crowded || to == BACK ? "16m" : "128m");
        subscription = from == 0 ? null : aeron.addSubscription("aeron:ipc", from);
        publication = to == 0 ? null : aeron.addExclusivePublication(channel, to);
    }

    /** Begins a sample: nothing has been received yet. */
    void begin(final Sample sample) {
        if (bytes.length != sample.size()) {
            bytes = new byte[sample.size()];
            message.wrap(bytes);
        }
        received = 0;
        sum = 0;
        touched = sample.touched();
    }

    /** Sends one message, a long one in several pieces; what was written into it. */
    long send(final long word) {
        final long written = touched ? Touch.writeAll(bytes, bytes.length, word) : 0;
        final int most = publication.maxMessageLength();
        for (int done = 0; done < bytes.length; done += most) {
            final int length = Math.min(most, bytes.length - done);
            long position;
            while ((position = publication.offer(message, done, length)) < 0) {
                if (position == Publication.CLOSED || position == Publication.MAX_POSITION_EXCEEDED) {
                    throw new IllegalStateException("the publication is closed");
                }
                idle();
            }
        }
        return written;
    }

    /** Receives until bytesInAll bytes were received since the sample began. */
    void receive(final long bytesInAll) {
        while (received < bytesInAll) {
            if (subscription.poll(this, FRAGMENTS) == 0) {
                idle();
            }
        }
    }

    long sum() {
        return sum;
    }

    @Override
    public void onFragment(final DirectBuffer buffer, final int offset, final int length, final Header header) {
        if (touched) {
            sum += touch.sumAll(buffer, offset, length);
        }
        received += length;
    }

    /** With more processes than cores another must run for this one to go on. */
    private void idle() {
        if (aeron.isClosed()) {
            throw new IllegalStateException("Aeron is closed");
        }
        if (crowded) {
            Thread.yield();
        } else {
            Thread.onSpinWait();
        }
    }

    @Override
    public void close() {
        aeron.close();
    }
}
