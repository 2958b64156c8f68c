//! Decoding of ONNX's messages from memory.

use rten_onnx::protobuf::varint::read_varint;
use rten_onnx::protobuf::{DecodeMessage, ErrorKind, OwnedValues, ProtobufError, ReadValue};

use crate::error::{Error, Result};

/// Decodes a message; `what` names it in the error.
pub(super) fn decode<M: DecodeMessage<Types = OwnedValues>>(bytes: &[u8], what: &str) -> Result<M> {
    if !is_whole(bytes) {
        return Err(Error::malformed(format!("the file is truncated, or is no {what}: its last field is not complete")));
    }
    M::decode(Bytes { bytes, at: 0, stack: stack_position() })
        .map_err(|e| Error::malformed(format!("not a complete {what}: {e}")).with_source(e))
}

/// Whether the outermost fields end where the bytes end. The decoder takes an end between two fields for that of the message, at any depth.
fn is_whole(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while !rest.is_empty() {
        let Ok(tag) = read_varint(&mut rest) else { return false };
        let len = match tag & 7 {
            0 => read_varint(&mut rest).ok().map(|_| 0),
            1 => Some(8),
            2 => read_varint(&mut rest).ok().and_then(|len| usize::try_from(len).ok()),
            5 => Some(4),
            _ => None,
        };
        let Some(after) = len.and_then(|len| rest.get(len..)) else { return false };
        rest = after;
    }
    true
}

/// Bytes of stack that nested messages may take: a thread has 2 MiB, and a file can nest as deep as it is long.
const STACK_BYTES: usize = 512 << 10;

/// Where the stack stands, roughly.
fn stack_position() -> usize {
    let marker = 0u8;
    std::ptr::from_ref(std::hint::black_box(&marker)).addr()
}

/// Reads values from a slice. Unlike the reader of the crate it checks a stated length against what is left before it allocates, and stops
/// where messages nest so deep that the stack would not hold them.
struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the stack stood at the outermost message.
    stack: usize,
}

impl Bytes<'_> {
    fn take(&mut self, len: usize) -> Result<&[u8], ProtobufError> {
        let end = self.at.checked_add(len).filter(|&e| e <= self.bytes.len()).ok_or(ProtobufError::new(ErrorKind::Eof))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtobufError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }
}

impl ReadValue for Bytes<'_> {
    type Types = OwnedValues;

    fn read_i32(&mut self) -> Result<i32, ProtobufError> {
        self.array().map(i32::from_le_bytes)
    }

    fn read_i64(&mut self) -> Result<i64, ProtobufError> {
        self.array().map(i64::from_le_bytes)
    }

    fn read_varint(&mut self) -> Result<u64, ProtobufError> {
        if self.stack.abs_diff(stack_position()) > STACK_BYTES {
            return Err(ProtobufError::new(ErrorKind::IoError(std::io::Error::other("messages nest too deep"))));
        }
        let mut rest = &self.bytes[self.at..];
        let before = rest.len();
        let value = read_varint(&mut rest)?;
        self.at += before - rest.len();
        Ok(value)
    }

    fn read_bytes(&mut self, len: usize) -> Result<Vec<u8>, ProtobufError> {
        self.take(len).map(<[u8]>::to_vec)
    }

    fn read_string(&mut self, len: usize) -> Result<String, ProtobufError> {
        String::from_utf8(self.read_bytes(len)?).map_err(|_| ProtobufError::new(ErrorKind::InvalidUtf8))
    }

    fn skip(&mut self, len: usize) -> Result<(), ProtobufError> {
        self.take(len).map(|_| ())
    }

    fn position(&self) -> u64 {
        self.at as u64
    }
}
