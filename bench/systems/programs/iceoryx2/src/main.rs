// SPDX-License-Identifier: Apache-2.0
//! iceoryx2 as a peer of `wherry bench`: one receiving process, and one process for each sender, which it starts.
//! bench/systems/programs/README.md has the lines that are exchanged on standard input and output.
//!
//!     wherry-peer-iceoryx2 SENDERS CORES NAME          the receiver
//!     wherry-peer-iceoryx2 SENDERS CORES NAME RANK     a sender

mod link;
mod sample;
mod shared;
mod touch;

use iceoryx2::prelude::{ipc, Node};
use iceoryx2_bb_elementary::package_version::PackageVersion;
use link::{Receiving, Sending};
use sample::{Question, Sample};
use shared::Shared;
use std::io::{stdin, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

pub type Failure = Box<dyn std::error::Error>;

/// What all processes of one peer know.
struct Place {
    arguments: Vec<String>,
    senders: usize,
    rank: u64,
    node: Node<ipc::Service>,
    shared: Shared,
}

impl Place {
    fn new() -> Result<Self, Failure> {
        let arguments: Vec<String> = std::env::args().collect();
        let [_, senders, cores, name, rank @ ..] = &arguments[..] else {
            return Err("usage: wherry-peer-iceoryx2 SENDERS CORES NAME [RANK]".into());
        };
        let senders = senders.parse()?;
        let rank = rank.first().map_or(Ok(0), |rank| rank.parse())?;
        pin(cores, rank);
        let folder = std::env::var("TMPDIR").unwrap_or_else(|_| "/tmp".into());
        let file = std::path::Path::new(&folder).join("credit");
        Ok(Self {
            senders,
            rank,
            node: link::node(name, &folder)?,
            shared: Shared::open(&file, senders)?,
            arguments,
        })
    }

    /// The services of one sample: those of the messages to rank 0, and of the answers.
    fn service(&self, direction: &str, number: u64) -> String {
        format!("{}/{direction}/{number}", self.arguments[3])
    }

    fn sending(&self, direction: &str, number: u64, size: usize) -> Result<Sending<'_>, Failure> {
        let name = self.service(direction, number);
        let senders = if direction == "back" { 1 } else { self.senders };
        Sending::open(&self.node, &name, senders, self.rank, size, &self.shared)
    }

    /// Before new ends are opened, which count from nothing.
    fn forget_released(&self) {
        for sender in 0..=self.senders as u64 {
            self.shared.set_released(sender, 0);
        }
    }

    fn receiving(&self, direction: &str, number: u64) -> Result<Receiving<'_>, Failure> {
        let senders = if direction == "back" { 1 } else { self.senders };
        Receiving::open(
            &self.node,
            &self.service(direction, number),
            senders,
            &self.shared,
        )
    }
}

/// "0,1": the receiver's core and the sender's.
fn pin(cores: &str, rank: u64) {
    let Some(core) = cores
        .split(',')
        .nth(rank as usize)
        .and_then(|core| core.parse().ok())
    else {
        return;
    };
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
    }
}

/// A sender, seen from the receiver.
struct Member {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Member {
    fn start(place: &Place, rank: usize) -> Result<Self, Failure> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(&place.arguments[1..4])
            .arg(rank.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = process.stdin.take().ok_or("no pipe")?;
        let answers = BufReader::new(process.stdout.take().ok_or("no pipe")?);
        Ok(Self {
            process,
            orders,
            answers,
        })
    }

    fn tell(&mut self, line: &str) -> Result<(), Failure> {
        Ok(writeln!(self.orders, "{line}")?)
    }

    fn hear(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("a sender has ended".into());
        }
        Ok(line.trim_end().into())
    }
}

fn read_line() -> Result<String, Failure> {
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end().into())
}

fn say(line: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// The end of a stream that was opened for an earlier sample of the same size: its memory has been touched. Both sides
/// keep theirs by the same rule.
struct Kept<End> {
    size: usize,
    end: End,
    warm_up: u64,
}

impl<End> Kept<End> {
    /// The kept end, or a new one, which needs to go once around its memory.
    fn for_sample(
        kept: Option<Self>,
        sample: &Sample,
        open: impl FnOnce() -> Result<End, Failure>,
    ) -> Result<Self, Failure> {
        match kept.filter(|kept| kept.size == sample.size) {
            Some(kept) => Ok(Self {
                warm_up: sample.warm_up,
                ..kept
            }),
            None => Ok(Self {
                size: sample.size,
                end: open()?,
                warm_up: sample.warm_up.max(2 * link::DEPTH),
            }),
        }
    }
}

/// A sender's life: an order, "ready", and when told to go the sample; its sum is the answer.
fn send_samples(place: &Place) -> Result<(), Failure> {
    let mut kept = None;
    for number in 0.. {
        let line = read_line()?;
        if line.is_empty() || line == "end" {
            return Ok(());
        }
        let sample = Sample::parse(&line)?;
        if sample.question == Question::Stream {
            let open = || place.sending("to", number, sample.size);
            let mut stream = Kept::for_sample(kept.take(), &sample, open)?;
            say("open")?;
            sample::send_all(&sample, stream.warm_up, place.rank, &mut stream.end)?;
            let mut backoff = place.shared.backoff();
            while place.shared.begun() <= number {
                backoff.wait();
            }
            let sum = sample::send_all(&sample, sample.messages, place.rank, &mut stream.end)?;
            say(&sum.to_string())?;
            read_line()?;
            kept = Some(stream);
            continue;
        }
        kept = None;
        let mut sending = place.sending("to", number, sample.size)?;
        let mut receiving = place.receiving("back", number)?;
        say("open")?;
        for rounds in [sample.warm_up, sample.messages] {
            read_line()?;
            if sample.question == Question::Latency {
                sample::exchange_second(&sample, rounds, &mut sending, &mut receiving)?;
                say("0")?;
            } else {
                let ways = sample::exchange_asleep(
                    1,
                    rounds,
                    &place.shared,
                    &mut sending,
                    &mut receiving,
                )?;
                say(&join(&ways))?;
            }
        }
        read_line()?;
    }
    Ok(())
}

fn join(numbers: &[f64]) -> String {
    let words: Vec<String> = numbers.iter().map(f64::to_string).collect();
    words.join(" ")
}

/// Tells all senders, and begins when they have said that their ends are open.
fn open_senders(members: &mut [Member], line: &str) -> Result<(), Failure> {
    for member in members.iter_mut() {
        member.tell(line)?;
    }
    for member in members.iter_mut() {
        member.hear()?;
    }
    Ok(())
}

fn tell_all(members: &mut [Member], line: &str) -> Result<(), Failure> {
    members.iter_mut().try_for_each(|member| member.tell(line))
}

/// The receiver's part of a stream: seconds from the start together to the last message.
fn stream<'a>(
    place: &'a Place,
    members: &mut [Member],
    line: &str,
    number: u64,
    kept: &mut Option<Kept<Receiving<'a>>>,
) -> Result<String, Failure> {
    let sample = Sample::parse(line)?;
    let senders = place.senders as u64;
    let mut stream = Kept::for_sample(kept.take(), &sample, || {
        place.forget_released();
        place.receiving("to", number)
    })?;
    open_senders(members, line)?;
    sample::receive_all(&sample, stream.warm_up * senders, &mut stream.end)?;
    say("ready")?;
    read_line()?;
    let start = Instant::now();
    place.shared.begin(number + 1);
    let received = sample::receive_all(&sample, sample.messages * senders, &mut stream.end)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut sent = 0u64;
    for member in members.iter_mut() {
        sent = sent.wrapping_add(member.hear()?.parse()?);
    }
    if sent != received {
        return Err("what was received is not what was sent".into());
    }
    *kept = Some(stream);
    Ok(seconds.to_string())
}

fn exchange(place: &Place, other: &mut Member, line: &str, number: u64) -> Result<String, Failure> {
    let sample = Sample::parse(line)?;
    let mut receiving = place.receiving("to", number)?;
    let mut sending = place.sending("back", number, sample.size)?;
    open_senders(std::slice::from_mut(other), line)?;
    let mut ways = Vec::new();
    let mut others = String::new();
    for (rounds, counts) in [(sample.warm_up, false), (sample.messages, true)] {
        if counts {
            say("ready")?;
            read_line()?;
        }
        other.tell("go")?;
        ways = if sample.question == Question::Latency {
            sample::exchange_first(&sample, rounds, &mut sending, &mut receiving)?
        } else {
            sample::exchange_asleep(0, rounds, &place.shared, &mut sending, &mut receiving)?
        };
        others = other.hear()?;
    }
    let asleep = sample.question == Question::Asleep;
    Ok(if asleep {
        format!("{} {others}", join(&ways))
    } else {
        join(&ways)
    })
}

fn receive_samples(place: &Place) -> Result<(), Failure> {
    let mut members = (1..=place.senders)
        .map(|rank| Member::start(place, rank))
        .collect::<Result<Vec<_>, _>>()?;
    let pids: Vec<String> = members
        .iter()
        .map(|member| member.process.id().to_string())
        .collect();
    say(&format!(
        "processes {} {}",
        std::process::id(),
        pids.join(" ")
    ))?;
    say(&format!("version {}", PackageVersion::get()))?;
    let mut kept = None;
    for number in 0.. {
        let line = read_line()?;
        if line.is_empty() || line == "end" {
            break;
        }
        let result = match Sample::parse(&line)?.question {
            Question::Stream => stream(place, &mut members, &line, number, &mut kept)?,
            _ => {
                kept = None;
                place.forget_released();
                exchange(place, &mut members[0], &line, number)?
            }
        };
        tell_all(&mut members, "close")?;
        say(&format!("done {result}"))?;
    }
    tell_all(&mut members, "end")?;
    for member in &mut members {
        member.process.wait()?;
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let place = Place::new()?;
    if place.rank == 0 {
        receive_samples(&place)
    } else {
        send_samples(&place)
    }
}
