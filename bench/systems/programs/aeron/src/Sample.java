// SPDX-License-Identifier: Apache-2.0

/** What `wherry bench` asks for: the line `sample QUESTION SIZE MESSAGES WARM-UP TOUCHED`. */
record Sample(boolean latency, int size, long messages, long warmUp, boolean touched) {
    private static final long WARM_UP_BYTES = 64 << 20;
    private static final long WARM_UP_MESSAGES = 50_000;

    static Sample parse(final String line) {
        final String[] words = line.split(" ");
        if (words.length != 6 || !words[0].equals("sample")) {
            throw new IllegalArgumentException("not a sample: " + line);
        }
        final int size = Integer.parseInt(words[2]);
        // Java compiles what has run often.
        final long least = Math.max(1, Math.min(WARM_UP_MESSAGES, WARM_UP_BYTES / size));
        final long warmUp = Math.max(Long.parseLong(words[4]), least);
        return new Sample(words[1].equals("latency"), size, Long.parseLong(words[3]), warmUp, words[5].equals("1"));
    }
}
