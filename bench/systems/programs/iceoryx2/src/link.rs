// SPDX-License-Identifier: Apache-2.0
//! One direction of messages: a publisher and a subscriber of a service of byte slices.

use crate::shared::Shared;
use crate::touch;
use crate::Failure;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::{event, publish_subscribe};

/// How many messages may be on their way from one sender.
pub const DEPTH: u64 = 4;

type Services = (
    publish_subscribe::PortFactory<ipc::Service, [u8], u64>,
    event::PortFactory<ipc::Service>,
);

/// Makes a node with its own names and folder, so that it meets no files of another program and leaves none behind.
pub fn node(name: &str, folder: &str) -> Result<Node<ipc::Service>, Failure> {
    set_log_level(LogLevel::Error);
    let mut config = Config::default();
    config.global.prefix = FileName::new(format!("{name}-").as_bytes())?;
    config.global.set_root_path(&Path::new(folder.as_bytes())?);
    Ok(NodeBuilder::new()
        .config(&config)
        .signal_handling_mode(SignalHandlingMode::Disabled)
        .create::<ipc::Service>()?)
}

fn services(node: &Node<ipc::Service>, name: &str, senders: usize) -> Result<Services, Failure> {
    let messages = node
        .service_builder(&name.try_into()?)
        .publish_subscribe::<[u8]>()
        .user_header::<u64>()
        .payload_alignment(Alignment::new(64).ok_or("alignment")?)
        .enable_safe_overflow(false)
        .history_size(0)
        .subscriber_max_buffer_size(DEPTH as usize)
        .subscriber_max_borrowed_samples(1)
        .max_publishers(senders)
        .max_subscribers(1)
        .max_nodes(senders + 1)
        .open_or_create()?;
    let bells = node
        .service_builder(&name.try_into()?)
        .event()
        .max_notifiers(senders)
        .max_listeners(1)
        .max_nodes(senders + 1)
        .open_or_create()?;
    Ok((messages, bells))
}

pub struct Sending<'a> {
    publisher: Publisher<ipc::Service, [u8], u64>,
    bell: Notifier<ipc::Service>,
    shared: &'a Shared,
    rank: u64,
    size: usize,
    sent: u64,
}

impl<'a> Sending<'a> {
    pub fn open(
        node: &Node<ipc::Service>,
        name: &str,
        senders: usize,
        rank: u64,
        size: usize,
        shared: &'a Shared,
    ) -> Result<Self, Failure> {
        let (messages, bells) = services(node, name, senders)?;
        let publisher = messages
            .publisher_builder()
            .initial_max_slice_len(size)
            .max_loaned_samples(1)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .create()?;
        let bell = bells.notifier_builder().create()?;
        Ok(Self {
            publisher,
            bell,
            shared,
            rank,
            size,
            sent: 0,
        })
    }

    /// Sends the next message, written if there is a word to write; what it adds up to.
    pub fn send(&mut self, word: Option<u64>) -> Result<u64, Failure> {
        self.wait_for(DEPTH - 1);
        let mut message = self.publisher.loan_slice_uninit(self.size)?;
        let to = message.payload_mut().as_mut_ptr().cast::<u8>();
        let sum = word.map_or(0, |word| unsafe { touch::write_all(to, self.size, word) });
        *message.user_header_mut() = self.rank;
        unsafe { message.assume_init() }.send()?;
        self.sent += 1;
        Ok(sum)
    }

    pub fn ring(&self) -> Result<(), Failure> {
        self.bell.notify()?;
        Ok(())
    }

    /// Waits until at most `on_their_way` messages are in flight.
    pub fn wait_for(&self, on_their_way: u64) {
        let mut backoff = self.shared.backoff();
        while self.sent - self.shared.released(self.rank) > on_their_way {
            backoff.wait();
        }
    }
}

pub struct Receiving<'a> {
    subscriber: Subscriber<ipc::Service, [u8], u64>,
    bell: Listener<ipc::Service>,
    shared: &'a Shared,
    received: Vec<u64>,
}

impl<'a> Receiving<'a> {
    pub fn open(
        node: &Node<ipc::Service>,
        name: &str,
        senders: usize,
        shared: &'a Shared,
    ) -> Result<Self, Failure> {
        let (messages, bells) = services(node, name, senders)?;
        let subscriber = messages
            .subscriber_builder()
            .buffer_size(DEPTH as usize)
            .create()?;
        let bell = bells.listener_builder().create()?;
        let received = vec![0; senders + 1];
        Ok(Self {
            subscriber,
            bell,
            shared,
            received,
        })
    }

    /// The next message's sum, if it is to be read.
    pub fn receive(&mut self, touched: bool) -> Result<u64, Failure> {
        let mut backoff = self.shared.backoff();
        loop {
            let Some(message) = self.subscriber.receive()? else {
                backoff.wait();
                continue;
            };
            let sum = if touched {
                touch::sum_all(message.payload())
            } else {
                0
            };
            let sender = *message.user_header();
            drop(message);
            self.received[sender as usize] += 1;
            self.shared
                .set_released(sender, self.received[sender as usize]);
            return Ok(sum);
        }
    }

    /// Sleeps until a sender rings.
    pub fn sleep(&self) -> Result<(), Failure> {
        let mut rung = false;
        while !rung {
            self.bell.blocking_wait(|_| rung = true)?;
        }
        Ok(())
    }
}
