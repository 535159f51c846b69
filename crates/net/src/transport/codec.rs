//! One frame each way on a stream of its own: four bytes of length, big-endian, then that many bytes, then the end.
//!
//! The length is checked against the cap before anything is allocated. Memory is then taken piece by piece as bytes
//! arrive, from a room that all connections share, so a peer that announces much and sends little holds little.
//!
//! A fault of an incoming request is not an error of the stream but a value, so that it reaches the place where it
//! can be held against the peer that sent it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::StreamProtocol;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::counters::{Counters, Reason, add};

/// Memory for a frame grows by at most this many bytes ahead of what has arrived.
const PIECE_BYTES: usize = 16 * 1024;
/// Bytes of the length in front of a frame.
const LENGTH_BYTES: usize = 4;

/// A frame, with its share of the room for incoming frames.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) bytes: Vec<u8>,
    pub(super) held: Option<OwnedSemaphorePermit>,
}

/// What came, or goes, as a request.
#[derive(Debug)]
pub(super) enum Request {
    Frame(Frame),
    Fault(Reason),
}

/// Why a frame could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("the stream ended before a frame began")]
    Nothing,
    #[error("{}", .0.name())]
    Refused(Reason),
}

/// Reads and writes frames.
#[derive(Clone, Debug)]
pub(super) struct Codec {
    pub(super) frame_bytes_max: usize,
    pub(super) read_timeout: Duration,
    pub(super) room: Arc<Semaphore>,
    pub(super) counters: Arc<Counters>,
}

impl Codec {
    /// Reads exactly one frame and the end of the stream.
    async fn read<T: AsyncRead + Unpin + Send>(&self, io: &mut T) -> Result<Frame, Fault> {
        let malformed = |_| Fault::Refused(Reason::FrameMalformed);
        let mut length = [0; LENGTH_BYTES];
        // A stream that is reset at once says as little as one that is closed at once.
        if io.read(&mut length[..1]).await.unwrap_or(0) == 0 {
            return Err(Fault::Nothing);
        }
        io.read_exact(&mut length[1..]).await.map_err(malformed)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > self.frame_bytes_max {
            return Err(Fault::Refused(Reason::FrameTooLong));
        }
        let mut frame = Frame::default();
        while frame.bytes.len() < length {
            let start = frame.bytes.len();
            let piece = (length - start).min(PIECE_BYTES);
            let share = u32::try_from(piece).expect("a piece is small");
            let share = self.room.clone().try_acquire_many_owned(share);
            let share = share.map_err(|_| Fault::Refused(Reason::FrameNoRoom))?;
            match &mut frame.held {
                Some(held) => held.merge(share),
                none => *none = Some(share),
            }
            frame.bytes.resize(start + piece, 0);
            io.read_exact(&mut frame.bytes[start..]).await.map_err(malformed)?;
        }
        if io.read(&mut [0]).await.map_err(malformed)? != 0 {
            return Err(Fault::Refused(Reason::FrameMalformed));
        }
        add(&self.counters.bytes_received, (LENGTH_BYTES + length) as u64);
        Ok(frame)
    }

    async fn read_in_time<T: AsyncRead + Unpin + Send>(&self, io: &mut T) -> Result<Frame, Fault> {
        match tokio::time::timeout(self.read_timeout, self.read(io)).await {
            Ok(result) => result,
            Err(_) => Err(Fault::Refused(Reason::FrameSlow)),
        }
    }

    async fn write<T: AsyncWrite + Unpin + Send>(&self, io: &mut T, frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(frame.len()).ok().filter(|_| frame.len() <= self.frame_bytes_max);
        let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        io.write_all(&length.to_be_bytes()).await?;
        io.write_all(frame).await?;
        add(&self.counters.bytes_sent, (LENGTH_BYTES + frame.len()) as u64);
        Ok(())
    }
}

impl libp2p::request_response::Codec for Codec {
    type Protocol = StreamProtocol;
    type Request = Request;
    type Response = Frame;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Request>
    where
        T: AsyncRead + Unpin + Send,
    {
        Ok(match self.read_in_time(io).await {
            Ok(frame) => Request::Frame(frame),
            Err(Fault::Nothing) => Request::Fault(Reason::FrameMalformed),
            Err(Fault::Refused(reason)) => Request::Fault(reason),
        })
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Frame>
    where
        T: AsyncRead + Unpin + Send,
    {
        // The time of an answer is that of the whole request, which the behaviour watches.
        self.read(io).await.map_err(io::Error::other)
    }

    async fn write_request<T>(&mut self, _: &StreamProtocol, io: &mut T, request: Request) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        match request {
            Request::Frame(frame) => self.write(io, &frame.bytes).await,
            Request::Fault(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    async fn write_response<T>(&mut self, _: &StreamProtocol, io: &mut T, response: Frame) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        self.write(io, &response.bytes).await
    }
}

#[cfg(test)]
mod tests {
    use futures::io::Cursor;
    use proptest::prelude::*;

    use super::*;

    fn codec(frame_bytes_max: usize, room: usize) -> Codec {
        Codec {
            frame_bytes_max,
            read_timeout: Duration::from_secs(1),
            room: Arc::new(Semaphore::new(room)),
            counters: Arc::default(),
        }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
    }

    fn read(codec: &Codec, bytes: &[u8]) -> Result<Frame, Fault> {
        block_on(codec.read(&mut Cursor::new(bytes)))
    }

    fn fault(codec: &Codec, bytes: &[u8]) -> Fault {
        read(codec, bytes).expect_err("a fault")
    }

    fn written(codec: &Codec, frame: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        block_on(codec.write(&mut bytes, frame)).expect("a frame under the cap");
        bytes
    }

    #[test]
    fn a_length_over_the_cap_is_refused_though_nothing_follows() {
        assert_eq!(fault(&codec(1000, 10_000), &1001_u32.to_be_bytes()), Fault::Refused(Reason::FrameTooLong));
        assert_eq!(fault(&codec(1000, 10_000), &u32::MAX.to_be_bytes()), Fault::Refused(Reason::FrameTooLong));
    }

    #[test]
    fn a_frame_takes_room_and_gives_it_back() {
        let codec = codec(100_000, 150_000);
        let bytes = written(&codec, &vec![1; 100_000]);
        let first = read(&codec, &bytes).expect("there is room");
        assert_eq!(codec.room.available_permits(), 50_000);
        assert_eq!(fault(&codec, &bytes), Fault::Refused(Reason::FrameNoRoom));
        assert_eq!(codec.room.available_permits(), 50_000);
        drop(first);
        assert!(read(&codec, &bytes).is_ok());
    }

    #[test]
    fn a_frame_that_ends_early_or_late_is_malformed() {
        let codec = codec(100, 1000);
        let mut bytes = written(&codec, b"hello");
        for end in 1..bytes.len() {
            assert_eq!(fault(&codec, &bytes[..end]), Fault::Refused(Reason::FrameMalformed), "{end} bytes");
        }
        assert_eq!(fault(&codec, &[]), Fault::Nothing);
        bytes.push(0);
        assert_eq!(fault(&codec, &bytes), Fault::Refused(Reason::FrameMalformed));
        assert!(block_on(codec.write(&mut Vec::new(), &[0; 101])).is_err());
    }

    proptest! {
        #[test]
        fn frames_come_back_and_random_bytes_do_not_panic(frame in prop::collection::vec(any::<u8>(), 0..40_000)) {
            let codec = codec(40_000, 50_000);
            let back = read(&codec, &written(&codec, &frame)).expect("what was written");
            prop_assert_eq!(&back.bytes, &frame);
            drop(back);
            let _ = read(&codec, &frame);
            prop_assert_eq!(codec.room.available_permits(), 50_000);
        }
    }
}
