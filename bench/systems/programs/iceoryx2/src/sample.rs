// SPDX-License-Identifier: Apache-2.0
//! What `wherry bench` asks for, and what each side then does.

use crate::link::{Receiving, Sending};
use crate::shared::Shared;
use crate::{touch, Failure};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Question {
    Stream,
    Latency,
    Asleep,
}

#[derive(Clone, Copy)]
pub struct Sample {
    pub question: Question,
    pub size: usize,
    pub messages: u64,
    pub warm_up: u64,
    pub touched: bool,
}

impl Sample {
    /// From the line `sample QUESTION SIZE MESSAGES WARM-UP TOUCHED`.
    pub fn parse(line: &str) -> Result<Self, Failure> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["sample", question, size, messages, warm_up, touched] = words[..] else {
            return Err(format!("not a sample: {line}").into());
        };
        Ok(Self {
            question: match question {
                "stream" => Question::Stream,
                "latency" => Question::Latency,
                "asleep" => Question::Asleep,
                _ => return Err(format!("no such question: {question}").into()),
            },
            size: size.parse()?,
            messages: messages.parse()?,
            warm_up: warm_up.parse()?,
            touched: touched == "1",
        })
    }
}

/// Sends the messages of one sender; what they add up to.
pub fn send_all(
    sample: &Sample,
    messages: u64,
    rank: u64,
    sending: &mut Sending,
) -> Result<u64, Failure> {
    let mut sum = 0u64;
    for i in 0..messages {
        let word = sample.touched.then(|| touch::pattern(rank, i));
        sum = sum.wrapping_add(sending.send(word)?);
    }
    sending.wait_for(0);
    Ok(sum)
}

pub fn receive_all(
    sample: &Sample,
    messages: u64,
    receiving: &mut Receiving,
) -> Result<u64, Failure> {
    let mut sum = 0u64;
    for _ in 0..messages {
        sum = sum.wrapping_add(receiving.receive(sample.touched)?);
    }
    Ok(sum)
}

/// Rank 0's part of an exchange: nanoseconds of one way.
pub fn exchange_first(
    sample: &Sample,
    rounds: u64,
    sending: &mut Sending,
    receiving: &mut Receiving,
) -> Result<Vec<f64>, Failure> {
    let mut ways = Vec::with_capacity(rounds as usize);
    for i in 0..rounds {
        let start = Instant::now();
        sending.send(sample.touched.then(|| touch::pattern(0, i)))?;
        receiving.receive(sample.touched)?;
        ways.push(start.elapsed().as_nanos() as f64 / 2.0);
    }
    Ok(ways)
}

pub fn exchange_second(
    sample: &Sample,
    rounds: u64,
    sending: &mut Sending,
    receiving: &mut Receiving,
) -> Result<(), Failure> {
    for i in 0..rounds {
        receiving.receive(sample.touched)?;
        sending.send(sample.touched.then(|| touch::pattern(1, i)))?;
    }
    Ok(())
}

/// The pause before a message, for the other process to have gone to sleep.
const UNTIL_ASLEEP: Duration = Duration::from_millis(1);

/// One way at a time: `rank` 0 begins, each sleeps until the other's bell rings. Nanoseconds of each way to this side.
pub fn exchange_asleep(
    rank: u64,
    rounds: u64,
    shared: &Shared,
    sending: &mut Sending,
    receiving: &mut Receiving,
) -> Result<Vec<f64>, Failure> {
    let mut ways = Vec::with_capacity(rounds as usize);
    for i in 0..2 * rounds {
        if i % 2 == rank {
            std::thread::sleep(UNTIL_ASLEEP);
            shared.sent_at(rank).store(now(), Ordering::Relaxed);
            sending.send(None)?;
            sending.ring()?;
        } else {
            receiving.sleep()?;
            receiving.receive(false)?;
            let sent = shared.sent_at(1 - rank).load(Ordering::Relaxed);
            ways.push(now().saturating_sub(sent) as f64);
        }
    }
    Ok(ways)
}

/// The machine's clock, the same in all processes.
fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
