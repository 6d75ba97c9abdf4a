// SPDX-License-Identifier: Apache-2.0

import io.aeron.Aeron;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import org.agrona.concurrent.BackoffIdleStrategy;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * Aeron's IPC as a peer of `wherry bench`: one receiving process, with the media driver in it, and one process for each
 * sender, which it starts. bench/systems/programs/README.md has the lines on standard input and output.
 *
 * Peer SENDERS CORES NAME: the receiver; Peer SENDERS CORES NAME RANK: a sender.
 */
public final class Peer {
    private static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));
    /** The processes stand still between samples, and must not be taken for dead then. */
    private static final long TIMEOUT_HOURS = 24;

    private Peer() {
    }

    public static void main(final String[] arguments) throws Exception {
        final int senders = Integer.parseInt(arguments[0]);
        if (arguments.length > 3) {
            send(Integer.parseInt(arguments[3]), senders);
            return;
        }
        try (MediaDriver driver = MediaDriver.launch(driverContext())) {
            receive(arguments, senders);
        }
        System.exit(0);
    }

    private static String directory() {
        return System.getenv().getOrDefault("TMPDIR", "/dev/shm") + "/aeron";
    }

    private static MediaDriver.Context driverContext() {
        final long timeout = TimeUnit.HOURS.toNanos(TIMEOUT_HOURS);
        return new MediaDriver.Context()
            .aeronDirectoryName(directory())
            .threadingMode(ThreadingMode.SHARED)
            .sharedIdleStrategy(new BackoffIdleStrategy(100, 10, 1000, 1_000_000))
            .ipcMtuLength(65504)
            .termBufferSparseFile(true)
            .clientLivenessTimeoutNs(timeout)
            .publicationUnblockTimeoutNs(2 * timeout)
            .driverTimeoutMs(TimeUnit.HOURS.toMillis(TIMEOUT_HOURS))
            .warnIfDirectoryExists(false);
    }

    private static Aeron connect() {
        return Aeron.connect(new Aeron.Context()
            .aeronDirectoryName(directory())
            .preTouchMappedMemory(true)
            .driverTimeoutMs(TimeUnit.HOURS.toMillis(TIMEOUT_HOURS)));
    }

    /** A sender's life: an order, its sum as the answer, then the next. */
    private static void send(final int rank, final int senders) throws IOException {
        try (Link link = new Link(connect(), senders == 1 ? Link.BACK : 0, Link.TO_RECEIVER, senders > 1)) {
            System.out.println(0);
            for (String line = INPUT.readLine(); line != null && !line.equals("end"); line = INPUT.readLine()) {
                final Sample sample = Sample.parse(line);
                for (final long messages : new long[] {sample.warmUp(), sample.messages()}) {
                    link.begin(sample);
                    System.out.println(0);
                    INPUT.readLine();
                    System.out.println(sample.latency() ? answer(link, sample, messages) : sendAll(link, messages, rank));
                }
            }
        }
    }

    private static long sendAll(final Link link, final long messages, final int rank) {
        long sum = 0;
        for (long i = 0; i < messages; i++) {
            sum += link.send(Touch.pattern(rank, i));
        }
        return sum;
    }

    private static long answer(final Link link, final Sample sample, final long rounds) {
        for (long i = 1; i <= rounds; i++) {
            link.receive(i * sample.size());
            link.send(i);
        }
        return 0;
    }

    private static void receive(final String[] arguments, final int senders) throws Exception {
        try (Link link = new Link(connect(), Link.TO_RECEIVER, senders == 1 ? Link.BACK : 0, senders > 1)) {
            final List<Member> members = new ArrayList<>();
            final StringBuilder processes = new StringBuilder("processes " + ProcessHandle.current().pid());
            for (int rank = 1; rank <= senders; rank++) {
                members.add(new Member(arguments, rank));
                processes.append(' ').append(members.get(rank - 1).pid());
            }
            for (final Member member : members) {
                member.hear();
            }
            System.out.println(processes);
            System.out.println("version " + io.aeron.AeronVersion.VERSION + " (Java " + Runtime.version().feature() + ")");
            for (String line = INPUT.readLine(); line != null && !line.equals("end"); line = INPUT.readLine()) {
                System.out.println("done" + take(link, members, line));
            }
            for (final Member member : members) {
                member.tell("end");
                member.waitFor();
            }
        }
    }

    /** One sample, first its warm-up, then what counts; the result as text. */
    private static String take(final Link link, final List<Member> members, final String line) throws IOException {
        final Sample sample = Sample.parse(line);
        tellAll(members, line);
        round(link, members, sample, sample.warmUp());
        System.out.println("ready");
        INPUT.readLine();
        return round(link, members, sample, sample.messages());
    }

    private static String round(final Link link, final List<Member> members, final Sample sample, final long messages)
        throws IOException {
        link.begin(sample);
        hearAll(members);
        final long start = System.nanoTime();
        tellAll(members, "go");
        if (sample.latency()) {
            final double[] ways = exchange(link, sample, messages);
            hearAll(members);
            return Arrays.stream(ways).mapToObj(way -> " " + way).collect(Collectors.joining());
        }
        link.receive(messages * members.size() * sample.size());
        final double seconds = (System.nanoTime() - start) / 1e9;
        if (hearAll(members) != link.sum()) {
            throw new IOException("what was received is not what was sent");
        }
        return " " + seconds;
    }

    /** Half of each round trip in nanoseconds. */
    private static double[] exchange(final Link link, final Sample sample, final long rounds) {
        final double[] ways = new double[(int) rounds];
        for (int i = 0; i < rounds; i++) {
            final long sent = System.nanoTime();
            link.send(i);
            link.receive((i + 1L) * sample.size());
            ways[i] = (System.nanoTime() - sent) / 2.0;
        }
        return ways;
    }

    private static void tellAll(final List<Member> members, final String line) {
        members.forEach(member -> member.tell(line));
    }

    private static long hearAll(final List<Member> members) throws IOException {
        long sum = 0;
        for (final Member member : members) {
            sum += member.hear();
        }
        return sum;
    }
}
