// SPDX-License-Identifier: Apache-2.0
// The sleep-and-wake protocol of src/fabric/bell.hpp under a small ring, on a machine with store buffers: a store
// enters the buffer of the CPU that makes it and reaches memory at any later time. Loads read memory; no process loads a
// word that it stores. See README.md; `run` sets what is in capitals and not defined here.
//
//   CAPACITY, ITEMS         of the ring, and sent through it
//   SENDER_POLLS, RECEIVER_POLLS   that side sleeps on a descriptor, as an event loop does, instead of in wait()
//   UNFENCED                publishers may drop their fence at any moment, and sleepers then interrupt them
//   WEAK                    plain stores leave the buffer in any order with release stores; else all in FIFO order (TSO)
//   BREAK_*                 one rule is broken: the checker must find an error

#define TAIL     0  // W: sender
#define FINISHED 1  // W: sender; 0, or 1 + the final tail
#define HEAD     2  // W: receiver
#define SLEEPER  3  // + bell: DATA is written by the receiver, SPACE by the sender
#define PUBLISHER 5 // + bell: DATA is written by the sender, SPACE by the receiver; 1 if it publishes unfenced
#define SLOTS    7  // W: sender; payload
#define WORDS    (SLOTS + CAPACITY)

#define DATA  0
#define SPACE 1

mtype = { plain, loose, release };  // loose: plain, of another word, so that two plain stores may change places

byte memory[WORDS];
byte bell[2];   // a timer: 0 is silent
byte arms[2];   // sleeps announced ...
byte rings[2];  // ... and rung by the other side

// Of the sender [0] and of the receiver [1].
chan buffer[2] = [3] of { mtype, byte, byte };

#define SENDER   0
#define RECEIVER 1
#define STORE(cpu, kind, word, value) buffer[cpu]!kind, word, value
#define LOAD(word, variable) variable = memory[word]
#define FENCE(cpu) empty(buffer[cpu])
// The other CPU goes through a fence at some moment of the call.
#define INTERRUPT(cpu) empty(buffer[1 - cpu])

// One CPU's buffer drains by itself, at any time.
proctype Drain(byte cpu) {
  byte word, value;
end:
  do
#ifdef WEAK
  :: atomic { buffer[cpu]??plain, word, value -> memory[word] = value }
  :: atomic { buffer[cpu]??loose, word, value -> memory[word] = value }
  :: atomic { buffer[cpu]?release, word, value -> memory[word] = value }
#else
  :: atomic { buffer[cpu]?_, word, value -> memory[word] = value }
#endif
  od
}

// Bells::announce, Bells::answer, Bells::drop_fence. Each process keeps `seen`, the epoch when it last
// changed, and `fenced`.
inline announce(cpu, which) {
#ifndef BREAK_FENCE_IN_ANNOUNCE
  if
  :: fenced -> FENCE(cpu)
  :: else
  fi;
#endif
  LOAD(SLEEPER + which, epoch_seen);
  if
#ifdef BREAK_ONCE_PER_SLEEP
  :: epoch_seen % 2 == 1 || epoch_seen != seen ->
#else
  :: epoch_seen != seen ->
#endif
    seen = epoch_seen;
#ifdef UNFENCED
    if
    :: !fenced ->
#ifdef BREAK_RELEASE_OF_FENCE_BACK
      STORE(cpu, loose, PUBLISHER + which, 0);
#else
      STORE(cpu, release, PUBLISHER + which, 0);
#endif
      fenced = 1
    :: else
    fi;
#endif
    if
    :: epoch_seen % 2 == 1 -> atomic { bell[which] = 1; rings[which]++; assert(rings[which] <= arms[which]) }
    :: else
    fi
  :: else ->
#ifdef UNFENCED
    if
    :: fenced ->
      STORE(cpu, release, PUBLISHER + which, 1);
#ifndef BREAK_FENCE_IN_DROP
      FENCE(cpu);
#endif
      fenced = 0
    :: true  // it drops it later, or never, or has dropped it
    fi
#endif
  fi
}

// Connection::arm
inline arm(cpu, which, epoch) {
#ifndef BREAK_SILENCE_FIRST
  bell[which] = 0;
#endif
#ifdef BREAK_NEW_EPOCH
  atomic { epoch = epoch + 1 - epoch % 2; arms[which]++ }
#else
  atomic { epoch = epoch + 1 + epoch % 2; arms[which]++ }
#endif
  STORE(cpu, release, SLEEPER + which, epoch);
#ifndef BREAK_FENCE_IN_ARM
  FENCE(cpu);
#endif
#ifdef UNFENCED
  LOAD(PUBLISHER + which, unfenced);
  if
#ifdef BREAK_INTERRUPT
  :: skip
#else
  :: unfenced -> INTERRUPT(cpu); unfenced = 0
  :: else
#endif
  fi;
#endif
#ifdef BREAK_SILENCE_FIRST
  bell[which] = 0;
#endif
}

// Connection::disarm
inline disarm(cpu, which, epoch) {
  epoch = epoch + epoch % 2;
  STORE(cpu, release, SLEEPER + which, epoch)
}

// Connection::wait
inline wait(which) {
  atomic { bell[which] > 0 -> bell[which] = 0 }
}

// poll() on Connection::descriptor
inline poll(which) {
  bell[which] > 0
}

proctype Sender() {
  byte tail = 0, head = 0, epoch = 0, seen = 0, epoch_seen;
  bool fenced = 1, unfenced = 0;
  do
  :: tail < ITEMS ->
    // Until there is space.
    do
    :: tail - head < CAPACITY -> break
    :: tail - head == CAPACITY ->
      LOAD(HEAD, head);
      if
      :: tail - head < CAPACITY -> break
      :: else
      fi;
#ifdef SENDER_POLLS
      // Sender::rearm_descriptor, the event loop's poll, Sender::silence_descriptor
      arm(SENDER, SPACE, epoch);
#ifndef BREAK_RECHECK
      LOAD(HEAD, head);
      if
      :: tail - head < CAPACITY -> bell[SPACE] = 1
      :: else
      fi;
#endif
      poll(SPACE);
      bell[SPACE] = 0
#else
      // sleep_unless
      arm(SENDER, SPACE, epoch);
#ifndef BREAK_RECHECK
      LOAD(HEAD, head);
      if
      :: tail - head < CAPACITY
      :: else -> wait(SPACE)
      fi;
#else
      wait(SPACE);
#endif
      if
      :: disarm(SENDER, SPACE, epoch)
      :: true  // it may arm again instead, or go on
      fi
#endif
    od;
    STORE(SENDER, plain, SLOTS + tail % CAPACITY, tail + 1);
    tail++;
#ifdef BREAK_RELEASE_OF_TAIL
    STORE(SENDER, loose, TAIL, tail);
#else
    STORE(SENDER, release, TAIL, tail);
#endif
    announce(SENDER, DATA)
  :: tail == ITEMS -> break
  od;
  STORE(SENDER, release, FINISHED, tail + 1);
  announce(SENDER, DATA)
}

// Receiver::state: what is there. The end is looked at before the ring is.
inline look() {
  LOAD(FINISHED, finished);
  LOAD(TAIL, tail)
}
#define NOTHING (tail == head && finished == 0)

inline receive() {
  LOAD(SLOTS + head % CAPACITY, item);
  assert(item == head + 1);
  head++;
  STORE(RECEIVER, release, HEAD, head);
  announce(RECEIVER, SPACE)
}

proctype Receiver() {
  byte tail = 0, head = 0, finished = 0, epoch = 0, seen = 0, item, epoch_seen;
  bool fenced = 1, unfenced = 0;
#ifdef RECEIVER_POLLS
  // Receiver::descriptor
  arm(RECEIVER, DATA, epoch);
  look();
  if
  :: NOTHING
  :: else -> bell[DATA] = 1
  fi;
#endif
  do
  :: true ->
#ifdef RECEIVER_POLLS
    // An event loop that polls before each attempt, as level-triggered descriptors allow.
    poll(DATA);
#endif
    look();
    if
    :: tail != head -> receive()
    :: tail == head && finished != 0 -> assert(finished == head + 1); break
    :: NOTHING ->
      arm(RECEIVER, DATA, epoch);
#ifdef RECEIVER_POLLS
#ifndef BREAK_RECHECK
      // Receiver::rearm_descriptor
      look();
      if
      :: NOTHING
      :: else -> bell[DATA] = 1
      fi
#endif
#else
      // sleep_unless
#ifndef BREAK_RECHECK
      look();
      if
      :: NOTHING -> wait(DATA)
      :: else
      fi;
#else
      wait(DATA);
#endif
      if
      :: disarm(RECEIVER, DATA, epoch)
      :: true  // it may arm again instead, or go on
      fi
#endif
    fi
  od
}

init {
  atomic {
    run Drain(SENDER);
    run Drain(RECEIVER);
    run Sender();
    run Receiver()
  }
}
