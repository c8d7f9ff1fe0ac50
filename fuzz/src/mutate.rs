//! Mutation of inline scripts, a line at a time: random bytes seldom spell a command.

use crate::vocabulary::{Vocabulary, vocabulary};

/// More lines than this are not looked at.
const MAX_LINES: usize = 400;

/// Changes one line of a script, or adds, drops, moves or repeats one.
pub fn mutate_script(script: &[u8], max_size: usize, seed: u32) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(u64::from(seed));
    let lines = script.split(|&byte| byte == b'\n').take(MAX_LINES);
    let mut lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
    lines.retain(|line| !line.is_empty());
    for _ in 0..rng.usize(1..4) {
        mutate_lines(&mut lines, vocabulary(), &mut rng);
    }
    let mut script = Vec::with_capacity(script.len() + 64);
    for line in lines {
        if script.len() + line.len() < max_size {
            script.extend(line);
            script.push(b'\n');
        }
    }
    script
}

fn mutate_lines(lines: &mut Vec<Vec<u8>>, vocabulary: &Vocabulary, rng: &mut fastrand::Rng) {
    let at = rng.usize(0..=lines.len());
    match rng.u8(..8) {
        0..3 => lines.insert(at, sentence(vocabulary, rng)),
        3 if at < lines.len() => drop(lines.remove(at)),
        4 if at < lines.len() => {
            let other = rng.usize(..lines.len());
            lines.swap(at, other);
        }
        5 if at < lines.len() => lines.insert(at, lines[at].clone()),
        _ if at < lines.len() => change_word(&mut lines[at], vocabulary, rng),
        _ => lines.push(sentence(vocabulary, rng)),
    }
}

/// A command with about as many words as it wants.
fn sentence(vocabulary: &Vocabulary, rng: &mut fastrand::Rng) -> Vec<u8> {
    let Some((name, arity)) = rng.choice(&vocabulary.commands) else {
        return b"PING".to_vec();
    };
    let has = name.split(' ').count() as i64;
    let mut wants = (arity.abs() - has).max(0);
    if *arity < 0 {
        wants += rng.i64(0..4);
    }
    if rng.u8(..32) == 0 {
        wants += rng.i64(-1..3);
    }
    let mut line = name.clone();
    for _ in 0..wants {
        line.push(' ');
        line.push_str(vocabulary.word(rng));
    }
    line.into_bytes()
}

fn change_word(line: &mut Vec<u8>, vocabulary: &Vocabulary, rng: &mut fastrand::Rng) {
    let mut words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let at = rng.usize(..words.len());
    let word = vocabulary.word(rng).as_bytes();
    match rng.u8(..4) {
        0 => words.insert(at + 1, word),
        1 if words.len() > 1 => drop(words.remove(at)),
        _ => words[at] = word,
    }
    *line = words.join(&b' ');
}
