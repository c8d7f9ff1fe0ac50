//! DUMP payloads that are exchanged with a redis-server.

use crate::data::rdb::{self, Compression, Reader, Visitor, Writer};
use crate::types::list::ListRef;
use crate::types::packed::PackedList;
use crate::types::stream::Stream;

/// The nodes of the list in a payload, each with its elements.
pub(crate) fn list_nodes(payload: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut shape = Shape::default();
    visit(payload, &mut shape);
    shape.0
}

/// The payload of a list.
pub(crate) fn of_list(list: ListRef<'_>) -> Vec<u8> {
    let mut payload = Vec::new();
    Writer::new(&mut payload, Compression::Lzf).list_value(list);
    rdb::seal(&mut payload);
    payload
}

/// The stream in a payload.
pub(crate) fn stream(payload: &[u8]) -> Stream {
    let mut taken = Taken(None);
    visit(payload, &mut taken);
    taken.0.expect("it is a stream")
}

fn visit(payload: &[u8], visitor: &mut impl Visitor) {
    let (kind, value) = rdb::open(payload, false).expect("it is whole");
    rdb::decode(kind, &mut Reader::new(value), visitor).expect("it is well-formed");
}

/// The nodes of a list in a payload.
#[derive(Default)]
struct Shape(Vec<Vec<Vec<u8>>>);

impl Visitor for Shape {
    fn string(&mut self, _: &[u8]) {}
    fn begin(&mut self, _: rdb::Type, _: u64) {}
    fn list_element(&mut self, _: &[u8]) {}
    fn list_node(&mut self, node: PackedList) {
        let elements = node.view().iter().map(|elem| elem.text().to_vec());
        self.0.push(elements.collect());
    }
    fn list_plain_node(&mut self, element: &[u8]) {
        self.0.push(vec![element.to_vec()]);
    }
    fn set_member(&mut self, _: &[u8]) -> bool {
        false
    }
    fn sorted_set_member(&mut self, _: &[u8], _: f64) -> bool {
        false
    }
    fn hash_field(&mut self, _: &[u8], _: &[u8]) -> bool {
        false
    }
    fn stream(&mut self, _: Stream) {}
}

/// Keeps the stream of a payload.
struct Taken(Option<Stream>);

impl Visitor for Taken {
    fn string(&mut self, _: &[u8]) {}
    fn begin(&mut self, _: rdb::Type, _: u64) {}
    fn list_element(&mut self, _: &[u8]) {}
    fn list_node(&mut self, _: PackedList) {}
    fn list_plain_node(&mut self, _: &[u8]) {}
    fn set_member(&mut self, _: &[u8]) -> bool {
        false
    }
    fn sorted_set_member(&mut self, _: &[u8], _: f64) -> bool {
        false
    }
    fn hash_field(&mut self, _: &[u8], _: &[u8]) -> bool {
        false
    }
    fn stream(&mut self, stream: Stream) {
        self.0 = Some(stream);
    }
}
