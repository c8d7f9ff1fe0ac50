use super::super::testing::any_text;
use super::listpack::each_listpack_element;
use super::*;

impl<'a, const TWO_WAY: bool> View<'a, TWO_WAY> {
    /// Looks at bytes from elsewhere if they are exactly what a block with these elements would be.
    pub(crate) fn check(bytes: &'a [u8]) -> Option<Self> {
        let view = View(bytes);
        if bytes.is_empty() {
            return Some(view);
        }
        let mut again = Block::<TWO_WAY>::new();
        again.begin();
        let (mut at, mut len) = (HEADER, 0);
        while at < bytes.len() {
            let (elem, _) = decode(bytes.get(at..)?)?;
            if Elem::parse(&elem.text()) != elem || len == Block::<TWO_WAY>::MAX_LEN {
                return None;
            }
            again.push_back(elem);
            at += view.step(at)?;
            len += 1;
        }
        (again.bytes == bytes).then_some(view)
    }
}

impl<'a> View<'a, true> {
    /// The elements before a position, the nearest first.
    pub(crate) fn iter_back(self, from: Pos) -> impl Iterator<Item = Elem<'a>> {
        let mut pos = from;
        std::iter::from_fn(move || {
            pos = self.prev(pos)?;
            self.at(pos)
        })
    }
}

type Model = Vec<Vec<u8>>;

fn texts<const TWO_WAY: bool>(block: &Block<TWO_WAY>) -> Model {
    block
        .view()
        .iter()
        .map(|elem| elem.text().to_vec())
        .collect()
}

/// The size of Redis's encoding, computed from the text alone.
fn listpack_entry_bytes(text: &[u8]) -> usize {
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| Some((text, text.parse::<i64>().ok()?)))
        .filter(|(text, number)| number.to_string() == *text);
    let size = match number {
        Some((_, 0..=127)) => 1,
        Some((_, -4096..=4095)) => 2,
        Some((_, -32_768..=32_767)) => 3,
        Some((_, -8_388_608..=8_388_607)) => 4,
        Some((_, -2_147_483_648..=2_147_483_647)) => 5,
        Some(_) => 9,
        None if text.len() < 64 => 1 + text.len(),
        None if text.len() < 4096 => 2 + text.len(),
        None => 5 + text.len(),
    };
    size + match size {
        ..=127 => 1,
        128..=16_382 => 2,
        _ => 3,
    }
}

fn assert_same<const TWO_WAY: bool>(block: &Block<TWO_WAY>, model: &Model) {
    let view = block.view();
    assert_eq!(&texts(block), model);
    assert_eq!(block.len(), model.len());
    let listpack = 7 + model
        .iter()
        .map(|text| listpack_entry_bytes(text))
        .sum::<usize>();
    assert_eq!(view.listpack_bytes(), listpack);
    assert!(View::<TWO_WAY>::check(view.bytes()).is_some());
    let mut written = Vec::new();
    view.write_listpack(&mut written);
    assert_eq!(written.len(), listpack);
    let read = Block::<TWO_WAY>::from_listpack(&written).expect("a listpack just written");
    assert_eq!(&texts(&read), model);
}

fn edits_follow_a_vector<const TWO_WAY: bool>(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut block, mut model) = (Block::<TWO_WAY>::new(), Model::new());
    for step in 0..300 {
        let text = any_text(&mut rng);
        let elem = Elem::parse(&text);
        let index = rng.usize(..=model.len());
        let pos = block.view().seek(index).expect("an index in range");
        match rng.u32(..12) {
            0..5 => {
                block.insert(pos, elem);
                model.insert(index, text);
            }
            5 => {
                block.push_back(elem);
                model.push(text);
            }
            6 => {
                block.push_front(elem);
                model.insert(0, text);
            }
            7 | 8 if index < model.len() => {
                block.replace(pos, elem);
                model[index] = text;
            }
            9 if index < model.len() => {
                block.remove(pos);
                model.remove(index);
            }
            10 => {
                let count = rng.usize(..4);
                let removed = block.remove_many(pos, count);
                assert_eq!(removed, count.min(model.len() - index));
                model.drain(index..index + removed);
            }
            11 => {
                let tail = block.split_off(pos);
                assert_same(&tail, &model[index..].to_vec());
                assert_same(&block, &model[..index].to_vec());
                block.append(tail.view(), tail.view().start());
            }
            _ => {}
        }
        assert_same(&block, &model);
        let wanted = model
            .get(rng.usize(..=model.len()))
            .unwrap_or(&Vec::new())
            .clone();
        for stride in [1, 2] {
            let found = block
                .view()
                .find(Elem::parse(&wanted), block.view().start(), stride);
            let expected = (0..model.len())
                .step_by(stride)
                .find(|&at| model[at] == wanted);
            assert_eq!(
                found,
                expected.and_then(|index| block.view().seek(index)),
                "seed {seed}, step {step}"
            );
        }
    }
}

#[test]
fn edits_match_a_vector() {
    for seed in 0..40 {
        println!("seed {seed}");
        edits_follow_a_vector::<false>(seed);
        edits_follow_a_vector::<true>(seed);
    }
}

#[test]
fn a_two_way_block_reads_the_same_backwards() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut block = PackedList::new();
        for _ in 0..rng.usize(..60) {
            block.push_back(Elem::parse(&any_text(&mut rng)));
        }
        let view = block.view();
        let mut backwards: Model = view
            .iter_back(view.end())
            .map(|elem| elem.text().to_vec())
            .collect();
        backwards.reverse();
        assert_eq!(backwards, texts(&block));
        assert_eq!(view.prev(view.start()), None);
        for index in 0..block.len() {
            let pos = view.seek(index).expect("in range");
            assert_eq!(view.next(pos).and_then(|next| view.prev(next)), Some(pos));
        }
        assert_eq!(view.seek(block.len() + 1), None);
    }
}

#[test]
fn every_integer_encoding_round_trips_at_its_limits() {
    let limits = [
        0, 127, 128, 4095, 4096, 32_767, 32_768, 8_388_607, 8_388_608,
    ];
    let wide = [i64::from(i32::MAX), i64::from(i32::MAX) + 1, i64::MAX];
    for limit in limits.into_iter().chain(wide) {
        for number in [limit, -limit, -limit - 1] {
            let mut block = Packed::new();
            block.push_back(Elem::Int(number));
            assert_eq!(block.view().get(0), Some(Elem::Int(number)));
            assert_same(&block, &vec![number.to_string().into_bytes()]);
        }
    }
}

#[test]
fn only_canonical_numbers_become_integers() {
    for text in [
        "",
        "-",
        "-0",
        "01",
        "+1",
        " 1",
        "1 ",
        "9223372036854775808",
        "1e3",
    ] {
        assert_eq!(Elem::parse(text.as_bytes()), Elem::Bytes(text.as_bytes()));
    }
    assert_eq!(Elem::parse(b"-9223372036854775808"), Elem::Int(i64::MIN));
}

/// A listpack that redis-server 7.0.15 wrote for the hash a -> 1, bb -> -5000, c -> hello.
#[test]
fn a_listpack_of_redis_is_read_and_written_to_the_byte() {
    let from_redis = b"\x1e\x00\x00\x00\x06\x00\x81a\x02\x01\x01\x82bb\x03\xf1\x78\xec\x03\x81c\x02\x85hello\x06\xff";
    let block = Packed::from_listpack(from_redis).expect("a listpack");
    assert_eq!(
        texts(&block),
        [&b"a"[..], b"1", b"bb", b"-5000", b"c", b"hello"]
    );
    let mut written = Vec::new();
    block.view().write_listpack(&mut written);
    assert_eq!(written, from_redis);
}

#[test]
fn mutated_bytes_are_read_without_harm() {
    for seed in 0..300 {
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut block = PackedList::new();
        for _ in 0..rng.usize(1..20) {
            block.push_back(Elem::parse(&any_text(&mut rng)));
        }
        let mut listpack = Vec::new();
        block.view().write_listpack(&mut listpack);
        let mut bytes = block.into_bytes();
        for _ in 0..rng.usize(1..6) {
            let (at, in_listpack) = (rng.usize(..bytes.len()), rng.usize(..listpack.len()));
            bytes[at] = rng.u8(..);
            listpack[in_listpack] = rng.u8(..);
        }
        read_everything::<true>(&bytes);
        read_everything::<false>(&bytes);
        let mut elements = 0;
        let whole = each_listpack_element(&listpack, |_| {
            elements += 1;
            true
        });
        let read = PackedList::from_listpack(&listpack);
        assert_eq!(read.map(|block| block.len()), whole.map(|()| elements));
    }
}

fn read_everything<const TWO_WAY: bool>(bytes: &[u8]) {
    let view = View::<TWO_WAY>::new(bytes);
    let _ = (
        view.len(),
        view.listpack_bytes(),
        view.seek(view.len() / 2 + 1),
    );
    let _ = view.find(Elem::Bytes(b"zz"), view.start(), 2);
    assert!(view.iter().count() <= bytes.len() && view.pairs().count() <= bytes.len());
    let well_formed = View::<TWO_WAY>::check(bytes).is_some();
    let mut block = Block::<TWO_WAY>::from_bytes(bytes.to_vec());
    block.remove_many(block.view().start(), 3);
    block.replace(block.view().start(), Elem::Int(7));
    if well_formed {
        assert!(View::<TWO_WAY>::check(block.view().bytes()).is_some());
    }
    let backwards = View::<true>::new(bytes);
    let _ = backwards.iter_back(backwards.end()).count();
}

#[test]
fn a_five_field_hash_takes_ten_bytes_and_its_texts_in_a_block() {
    let mut block = Packed::new();
    for field in 0..5 {
        block.push_back(Elem::parse(format!("field{field}").as_bytes()));
        block.push_back(Elem::parse(b"valueval"));
    }
    assert_eq!(block.view().bytes().len(), 4 + 5 * (6 + 8) + 10);
}
