// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;

/** A sender, seen from the receiver. */
final class Member {
    private final Process process;
    private final PrintStream orders;
    private final BufferedReader answers;

    Member(final String[] arguments, final int rank) throws IOException {
        final List<String> command = new ArrayList<>(List.of(
            ProcessHandle.current().info().command().orElse("java"), "-cp", System.getProperty("java.class.path"), "Peer"));
        command.addAll(List.of(arguments));
        command.add(Integer.toString(rank));
        process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        orders = new PrintStream(process.getOutputStream(), true);
        answers = new BufferedReader(new InputStreamReader(process.getInputStream()));
    }

    long pid() {
        return process.pid();
    }

    void tell(final String line) {
        orders.println(line);
    }

    long hear() throws IOException {
        final String line = answers.readLine();
        if (line == null) {
            throw new IOException("a sender has ended");
        }
        return Long.parseLong(line);
    }

    void waitFor() throws InterruptedException {
        process.waitFor();
    }
}
