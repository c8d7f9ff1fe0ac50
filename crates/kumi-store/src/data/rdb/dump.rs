//! The frame of a DUMP payload: `type byte | value | 2 bytes version | 8 bytes CRC-64 of all before it`, low byte first.

use super::{Compression, MAX_VERSION, WRITTEN_VERSION, Writer, write_value};
use crate::base::crc64;
use crate::data::keyspace::ValueRef;

/// Version and checksum.
const FOOTER: usize = 10;

/// Why RESTORE refuses a payload. `Display` is what the client sees; nothing was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DumpError {
    /// Too short, from a newer version, or damaged.
    #[error("ERR DUMP payload version or checksum are wrong")]
    Footer,
    /// The frame is right and the value is not.
    #[error("ERR Bad data format")]
    Format,
}

/// The DUMP payload of a value.
pub(crate) fn payload(value: ValueRef<'_>, compression: Compression) -> Vec<u8> {
    let mut payload = Vec::new();
    write_value(&mut Writer::new(&mut payload, compression), value);
    seal(&mut payload);
    payload
}

/// Finishes a payload that consists of a type byte and a value.
pub(crate) fn seal(payload: &mut Vec<u8>) {
    payload.extend_from_slice(&WRITTEN_VERSION.to_le_bytes());
    let checksum = crc64::checksum(payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
}

/// Checks the footer and returns the type byte and the bytes of the value. The checksum is not looked at when
/// `skip_checksum` says so (DEBUG SET-SKIP-CHECKSUM-VALIDATION).
pub(crate) fn open(payload: &[u8], skip_checksum: bool) -> Result<(u8, &[u8]), DumpError> {
    let body = payload.len().checked_sub(FOOTER).ok_or(DumpError::Footer)?;
    let (checked, checksum) = payload.split_last_chunk::<8>().ok_or(DumpError::Footer)?;
    let version = u16::from_le_bytes([payload[body], payload[body + 1]]);
    if version > MAX_VERSION {
        return Err(DumpError::Footer);
    }
    if !skip_checksum && crc64::checksum(checked) != u64::from_le_bytes(*checksum) {
        return Err(DumpError::Footer);
    }
    let (&kind, value) = payload[..body].split_first().ok_or(DumpError::Format)?;
    Ok((kind, value))
}
