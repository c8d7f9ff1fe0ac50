//! Names of chunks in messages.

/// Longest chunk name shown in a message, its end included.
const ID_SIZE: usize = 80;

/// The form of a chunk name that messages show.
pub(crate) fn chunk_id(source: &[u8]) -> Vec<u8> {
    match source.first() {
        Some(b'=') => source[1..].iter().take(ID_SIZE - 1).copied().collect(),
        Some(b'@') => {
            let name = &source[1..];
            let room = ID_SIZE - b" '...' \0".len();
            if name.len() > room {
                [b"...", &name[name.len() - room..]].concat()
            } else {
                name.to_vec()
            }
        }
        _ => {
            let line = source
                .iter()
                .position(|b| matches!(b, b'\n' | b'\r'))
                .unwrap_or(source.len());
            let room = ID_SIZE - b" [string \"...\"] \0".len();
            let shown = line.min(room);
            let mut id = b"[string \"".to_vec();
            id.extend_from_slice(&source[..shown]);
            if shown < source.len() {
                id.extend_from_slice(b"...");
            }
            id.extend_from_slice(b"\"]");
            id
        }
    }
}
