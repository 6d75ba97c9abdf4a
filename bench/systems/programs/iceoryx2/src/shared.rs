// SPDX-License-Identifier: Apache-2.0
//! A page that the processes of one peer share: how many messages of each sender the receiver has given back.
//!
//! iceoryx2 0.10.0 with back-pressure alone was seen to hang, so a sender never has more messages on their way than the
//! receiver's queue holds.

use std::fs::OpenOptions;
use std::io::Result;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A word on a cache line of its own.
#[repr(align(128))]
struct Line(AtomicU64);

pub struct Shared {
    lines: &'static [Line],
    crowded: bool,
}

impl Shared {
    /// The page of `senders` senders in this file, which is made if it is not there.
    pub fn open(file: &Path, senders: usize) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(file)?;
        let count = senders + 4;
        let bytes = count * std::mem::size_of::<Line>();
        file.set_len(bytes as u64)?;
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let lines = unsafe { std::slice::from_raw_parts(memory.cast::<Line>(), count) };
        Ok(Self {
            lines,
            crowded: senders > 1,
        })
    }

    /// How to wait for what another process does.
    pub fn backoff(&self) -> Backoff {
        Backoff::new(self.crowded)
    }

    /// How many messages of this sample have come back. W: the receiver.
    pub fn released(&self, sender: u64) -> u64 {
        self.lines[sender as usize + 3].0.load(Ordering::Acquire)
    }

    pub fn set_released(&self, sender: u64, messages: u64) {
        self.lines[sender as usize + 3]
            .0
            .store(messages, Ordering::Release);
    }

    /// The samples begun so far, which the senders wait for before each: sooner seen than a line from a pipe. W: the receiver.
    pub fn begun(&self) -> u64 {
        self.lines[2].0.load(Ordering::Acquire)
    }

    pub fn begin(&self, samples: u64) {
        self.lines[2].0.store(samples, Ordering::Release);
    }

    /// When this side of an exchange last sent, in nanoseconds of the machine's clock. W: that side.
    pub fn sent_at(&self, rank: u64) -> &AtomicU64 {
        &self.lines[rank as usize].0
    }
}

/// Looks, and yields the core now and then: another process may need it to go on, and with many senders surely does.
pub struct Backoff {
    looks: u32,
    looks_each_turn: u32,
}

impl Backoff {
    fn new(crowded: bool) -> Self {
        let looks_each_turn = if crowded { 1 } else { 200 };
        Self {
            looks: 0,
            looks_each_turn,
        }
    }

    pub fn wait(&mut self) {
        self.looks += 1;
        if self.looks % self.looks_each_turn == 0 {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}
