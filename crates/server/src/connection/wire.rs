//! Bytes from and to one client, cut into messages.
//!
//! Invariants
//! 1. The length of a message is checked before space is made for it, and space grows as bytes arrive.
//! 2. A message is cut out of the input before it is read, so that no message is read into the next.
//! 3. A client that does not read is left after a while; until then it costs one buffer.
//! 4. A long message that does not fit into the memory of connections is read past, and told of as refused.

use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use pgwire::messages::Message;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::memory::{Part, Share};
use super::{Stop, encoding};
use crate::error::{Result, SqlError, state};
use onrush_query::style::client_encoding;

/// Bytes of a message's kind and length.
const HEADER_BYTES: usize = 5;
/// The smallest and the largest message before the client is known.
const STARTUP_BYTES: std::ops::RangeInclusive<usize> = 8..=10_000;
/// Space made for input at a time.
const INPUT_BYTES: usize = 8 << 10;
/// More output than this is sent before more is made.
pub(super) const OUTPUT_BYTES: usize = 64 << 10;

/// After so long without a pause a client lets the others of its thread go on.
const TURN: Duration = Duration::from_millis(1);

/// A longer message has to be granted, and is handled aside.
const LONG_MESSAGE_BYTES: usize = 64 << 10;

/// One message of a client.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) body: Bytes,
    /// Why its body was read past, and is empty.
    pub(super) refused: Option<SqlError>,
}

impl Frame {
    /// Whether to read it takes so long that the other clients of the thread are to go on meanwhile.
    pub(super) fn is_long(&self) -> bool {
        self.body.len() > LONG_MESSAGE_BYTES
    }
}

/// A message that is being read past.
struct Refused {
    kind: u8,
    bytes_left: usize,
    why: SqlError,
}

/// One client's connection.
pub(super) struct Wire<S> {
    stream: S,
    input: BytesMut,
    pub(super) output: BytesMut,
    message_bytes_max: usize,
    write_timeout: Duration,
    /// What the connection takes.
    pub(super) memory: Share,
    refused: Option<Refused>,
    /// Length of the long message that is coming, which was granted.
    long_bytes: usize,
    /// Whether a long message has come and is being handled.
    handles_long: bool,
    /// When the client was last waited for, or others were let go on.
    turn_began: Instant,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(super) fn new(
        stream: S,
        message_bytes_max: usize,
        write_timeout: Duration,
        memory: Share,
    ) -> Wire<S> {
        let (input, output) = (BytesMut::new(), BytesMut::new());
        Wire {
            stream,
            input,
            output,
            message_bytes_max,
            write_timeout,
            memory,
            refused: None,
            long_bytes: 0,
            handles_long: false,
            turn_began: Instant::now(),
        }
    }

    /// The stream itself, and what the connection takes. Nothing may be left to be read or sent.
    pub(super) fn into_parts(self) -> (S, Share) {
        (self.stream, self.memory)
    }

    /// Whether a Sync has arrived behind what has been handled, with nothing to be run before it.
    pub(super) fn has_sync_next(&self) -> bool {
        let mut input = &self.input[..];
        while let Some((header, rest)) = input.split_first_chunk::<HEADER_BYTES>() {
            let [kind, length @ ..] = header;
            // Close and Flush run nothing.
            if !matches!(kind, b'C' | b'H') {
                return *kind == b'S';
            }
            let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
            let Some(next) = rest.get(length.saturating_sub(4)..) else { return false };
            input = next;
        }
        false
    }

    /// The next message, if all of it has arrived.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>> {
        self.next_frame_below(self.message_bytes_max)
    }

    /// As [`next_frame`](Self::next_frame), of a client that is not known yet.
    pub(super) fn next_login_frame(&mut self) -> Result<Option<Frame>> {
        self.next_frame_below(*STARTUP_BYTES.end())
    }

    fn next_frame_below(&mut self, bytes_max: usize) -> Result<Option<Frame>> {
        if self.refused.is_some() {
            return Ok(self.read_past());
        }
        let Some(header) = self.input.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let length = i32::from_be_bytes([header[1], header[2], header[3], header[4]]);
        let length = usize::try_from(length).ok().and_then(|length| length.checked_sub(4));
        let Some(length) = length else {
            return Err(SqlError::protocol("a message has an impossible length"));
        };
        if length > bytes_max {
            let message = format!("a message of {length} bytes is too large");
            let hint = format!("At most {bytes_max} bytes are taken.");
            return Err(SqlError::new(state::LIMIT_EXCEEDED, message).with_hint(hint).fatal());
        }
        if length > LONG_MESSAGE_BYTES && self.long_bytes == 0 {
            if let Err(why) = self.memory.ask(Part::Message, length) {
                let bytes_left = HEADER_BYTES + length;
                self.refused = Some(Refused { kind: header[0], bytes_left, why });
                return Ok(self.read_past());
            }
            self.long_bytes = length;
        }
        if self.input.len() < HEADER_BYTES + length {
            return Ok(None);
        }
        let mut message = self.input.split_to(HEADER_BYTES + length);
        self.handles_long |= self.long_bytes > 0;
        self.long_bytes = 0;
        let kind = message.get_u8();
        message.advance(4);
        Ok(Some(match encoding::decoded(kind, message.freeze(), client_encoding()) {
            Ok(body) => Frame { kind, body, refused: None },
            Err(why) => Frame { kind, body: Bytes::new(), refused: Some(why) },
        }))
    }

    /// The refused message, once all of it has gone by.
    #[cold]
    fn read_past(&mut self) -> Option<Frame> {
        let refused = self.refused.as_mut()?;
        let bytes = refused.bytes_left.min(self.input.len());
        self.input.advance(bytes);
        refused.bytes_left -= bytes;
        if refused.bytes_left > 0 {
            return None;
        }
        let Refused { kind, why, .. } = self.refused.take()?;
        Some(Frame { kind, body: Bytes::new(), refused: Some(why) })
    }

    /// The long message has been handled: neither it nor its buffer is kept.
    #[cold]
    fn end_long_message(&mut self) {
        self.handles_long = false;
        self.memory.note(Part::Message, 0);
        let rest = BytesMut::from(&self.input[..]);
        self.input = rest;
    }

    /// The first message, which has no kind, with its length. `is_alone`: nothing came behind it.
    pub(super) async fn startup_packet(&mut self) -> std::result::Result<(BytesMut, bool), Stop> {
        loop {
            if let Some(header) = self.input.first_chunk::<4>() {
                let length = usize::try_from(i32::from_be_bytes(*header)).unwrap_or(0);
                if !STARTUP_BYTES.contains(&length) {
                    return Err(SqlError::protocol("this is no beginning of the protocol").into());
                }
                if self.input.len() >= length {
                    let packet = self.input.split_to(length);
                    return Ok((packet, self.input.is_empty()));
                }
            }
            self.fill().await?;
        }
    }

    /// Waits for more input.
    pub(super) async fn fill(&mut self) -> std::result::Result<(), Stop> {
        if self.handles_long && self.long_bytes == 0 {
            self.end_long_message();
        }
        if self.input.capacity() - self.input.len() < INPUT_BYTES / 2 {
            self.input.reserve(INPUT_BYTES);
        }
        let input = self.input.capacity().saturating_sub(self.long_bytes);
        self.memory.note(Part::Buffers, input + self.output.capacity());
        self.end_turn().await;
        let mut read = pin!(self.stream.read_buf(&mut self.input));
        let at_once = std::future::poll_fn(|context| Poll::Ready(read.as_mut().poll(context)));
        let outcome = match at_once.await {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => {
                let outcome = read.await;
                self.turn_began = Instant::now();
                outcome
            }
        };
        match outcome {
            Ok(0) | Err(_) => Err(Stop::Closed),
            Ok(_) => Ok(()),
        }
    }

    /// Lets the other clients of the thread go on, if this one has had its turn.
    async fn end_turn(&mut self) {
        if self.turn_began.elapsed() > TURN {
            tokio::task::yield_now().await;
            self.turn_began = Instant::now();
        }
    }

    /// Sends everything that is to be sent.
    pub(super) async fn send(&mut self) -> std::result::Result<(), Stop> {
        if self.output.is_empty() {
            return Ok(());
        }
        if self.output.len() > OUTPUT_BYTES {
            self.end_turn().await;
        }
        let write = self.stream.write_all_buf(&mut self.output);
        match tokio::time::timeout(self.write_timeout, write).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Stop::Closed),
            Err(_) => {
                tracing::warn!("a client does not read; it is left");
                Err(Stop::Closed)
            }
        }
    }

    /// Appends a message to the output.
    pub(super) fn put(&mut self, message: &impl Message) {
        let start = self.output.len();
        let written = message.encode(&mut self.output);
        encoding::encode(&mut self.output, start, client_encoding());
        if let Err(error) = written {
            // Only what is longer than a message may be gets here.
            tracing::error!(%error, "a message could not be written");
        }
    }

    /// Says goodbye; what cannot be sent now is lost.
    pub(super) async fn close(&mut self) {
        if self.send().await.is_ok() {
            let _ = self.stream.shutdown().await;
        }
    }
}
