// SPDX-License-Identifier: Apache-2.0

import jdk.incubator.vector.ByteVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;
import org.agrona.DirectBuffer;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** The touch rule, as bench/harness/touch.hpp states it. Java makes no vectors of such loops by itself. */
final class Touch {
    private static final VectorSpecies<Long> WORDS = LongVector.SPECIES_PREFERRED;
    private static final VectorSpecies<Byte> BYTES = ByteVector.SPECIES_PREFERRED;
    private static final int PIECE = 8192;

    /** Memory outside the heap can be loaded into vectors only by way of an array, which stays in the nearest cache. */
    private final byte[] piece = new byte[PIECE];

    /** What message number `message` of a sender is filled with. */
    static long pattern(final long sender, final long message) {
        return (message + 1) * 0x9E3779B97F4A7C15L + (sender << 56);
    }

    /** Stores every byte and returns the sum of what it stored. */
    static long writeAll(final byte[] to, final int size, final long word) {
        final var words = LongVector.broadcast(WORDS, word).reinterpretAsBytes();
        final int step = WORDS.vectorByteSize();
        final int vectors = size / step * step;
        for (int i = 0; i < vectors; i += step) {
            words.intoArray(to, i);
        }
        final byte[] bytes = ByteBuffer.allocate(8).order(ByteOrder.nativeOrder()).putLong(word).array();
        long last = 0;
        for (int i = vectors; i < size; i++) {
            to[i] = bytes[i % 8];
        }
        for (int i = size % 8 - 1; i >= 0; i--) {
            last = last << 8 | bytes[i] & 0xFF;
        }
        return size / 8 * word + last;
    }

    /** Loads every byte: the sum of all words, the last one filled up with zeros. */
    long sumAll(final DirectBuffer from, final int offset, final int size) {
        long sum = 0;
        for (int done = 0; done < size; done += PIECE) {
            final int length = Math.min(PIECE, size - done);
            from.getBytes(offset + done, piece, 0, length);
            sum += sumOf(piece, length);
        }
        return sum;
    }

    private static long sumOf(final byte[] bytes, final int size) {
        final int step = BYTES.length();
        LongVector a = LongVector.zero(WORDS);
        LongVector b = a;
        int i = 0;
        for (; i + 2 * step <= size; i += 2 * step) {
            a = a.add(ByteVector.fromArray(BYTES, bytes, i).reinterpretAsLongs());
            b = b.add(ByteVector.fromArray(BYTES, bytes, i + step).reinterpretAsLongs());
        }
        long sum = a.add(b).reduceLanes(VectorOperators.ADD);
        for (; i < size; i++) {
            sum += (bytes[i] & 0xFFL) << 8 * (i % 8);
        }
        return sum;
    }
}
