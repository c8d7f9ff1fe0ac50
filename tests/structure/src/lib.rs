//! What holds for the sources of all crates: `cargo test -p kumi-structure-tests`. It builds none of them.

#[cfg(test)]
mod imports;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod randomness;
#[cfg(test)]
mod sources;
