//! What is asked of generated code.

mod calls;
mod events;
mod in_memory;
mod lab;
mod lost;
mod odd;
mod types;
mod unusual;
mod versions;
mod vocabulary;

use super::everything::{self, *};
use kumi_unison::{Json, Timestamp};
use serde_json::json;

/// One of each type.
fn scalars() -> Scalars {
    Scalars::new(
        "hello",
        5,
        0.5,
        1e9,
        true,
        Timestamp(1_700_000_000_000),
        vec![0, 1, 2],
        Json(json!({ "deep": [1, null, "a text that is too long to be stored inline"] })),
        Colour::SeaGreen,
        Mood::Unknown("somewhat odd".into()),
    )
}

fn lists() -> Lists {
    let person = Optionals {
        text: Some("ann".into()),
        blobs: Some(vec![vec![1], vec![]]),
        sky: Some([("blue".to_owned(), vec![7])].into()),
        list: Some(vec!["a-b".into()]),
        ..Optionals::default()
    };
    Lists {
        loose: Some(vec![json!(1).into(), json!("x").into()]),
        free: Some([("k".to_owned(), json!([true]).into())].into()),
        moods: Some([("now".to_owned(), Mood::Good)].into()),
        ..Lists::new(
            vec!["one".into()],
            vec![vec![0, 100], vec![]],
            [("ann".to_owned(), person)].into(),
        )
    }
}

fn leaf(label: &str) -> Tree {
    Tree::new(label, Vec::new())
}

fn tree() -> Tree {
    Tree {
        left: Some(Box::new(leaf("l"))),
        named: Some([("n".to_owned(), leaf("n"))].into()),
        leaf: Some(Box::new(Leaf::new(leaf("end")))),
        ..Tree::new("top", vec![leaf("a"), Tree::new("b", vec![leaf("c")])])
    }
}
