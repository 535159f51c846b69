//! The transport over real sockets on the loopback interface.

mod common;
mod honest;
mod hostile;
mod raw;
mod relay;
