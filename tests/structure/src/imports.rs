//! Which file of a crate imports which: read from the tokens of the sources, so that paths inside of macros count too.
//!
//! A path is followed through `use` to the file that defines the name. Paths that begin with neither `crate`,
//! `self` nor `super` lead to other crates, or to a module's own children, and are left out.

use crate::sources::files;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// How many `use`s are followed from one name to the next.
const MAX_USES: usize = 16;

/// The names of the modules from the crate's root to this one.
pub(crate) type ModulePath = Vec<String>;

/// The modules of a crate that are files, and the imports between them.
#[derive(Default)]
pub(crate) struct ModuleImports {
    /// Where each module's file is, from `src/` on.
    files: BTreeMap<ModulePath, PathBuf>,
    /// What the `use`s of a module bring in: a name, and the path behind it. Private ones count too, because the modules
    /// below may name them by `super::`.
    names: BTreeMap<ModulePath, BTreeMap<String, Vec<String>>>,
    paths: Vec<Import>,
}

/// A path in the code of a module, made absolute.
struct Import {
    from: ModulePath,
    to: Vec<String>,
    is_test: bool,
}

/// One file needs another.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: ModulePath,
    pub(crate) to: ModulePath,
    /// The importing code is compiled for tests only.
    pub(crate) is_test: bool,
}

impl ModuleImports {
    /// Reads all sources below a crate's `src/`.
    pub(crate) fn of(src: &Path) -> Self {
        let mut imports = Self::default();
        let mut sources = Vec::new();
        for file in files(src) {
            if file.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let path = file.strip_prefix(src).expect("a file below src");
            let module = module_of(path);
            imports.files.insert(module.clone(), path.to_owned());
            let text = fs::read_to_string(&file).expect("a file");
            let tokens: TokenStream = text.parse().expect("Rust");
            sources.push((module, tokens));
        }
        let mut tests = BTreeSet::new();
        for (module, tokens) in sources {
            let mut reader = Reader {
                imports: &mut imports,
                tests: &mut tests,
                file: module.clone(),
                module,
                is_test: false,
            };
            reader.read(&tokens);
        }
        // `#[cfg(test)] mod tests;` makes the whole file, and those below it, code of tests.
        for import in &mut imports.paths {
            let is_below = |test: &ModulePath| import.from.starts_with(test);
            import.is_test |= tests.iter().any(is_below);
        }
        imports
    }

    /// As if a module imported another.
    pub(crate) fn add(&mut self, from: &ModulePath, to: &ModulePath) {
        self.paths.push(Import {
            from: from.clone(),
            to: to.clone(),
            is_test: false,
        });
    }

    /// The modules that are files.
    pub(crate) fn modules(&self) -> impl Iterator<Item = &ModulePath> {
        self.files.keys()
    }

    /// There is a module of this name, or a folder with modules.
    pub(crate) fn contains(&self, module: &str) -> bool {
        let module = named(module);
        self.files.keys().any(|path| path.starts_with(&module))
    }

    /// The file of a module, from `src/` on.
    pub(crate) fn file(&self, module: &ModulePath) -> &Path {
        &self.files[module]
    }

    /// The imports between files, without those between a module and the modules above and below it.
    pub(crate) fn edges(&self) -> BTreeSet<Edge> {
        let edges = self.paths.iter().filter_map(|import| {
            let to = self.target(&import.to);
            let is_own = to.starts_with(&import.from) || import.from.starts_with(&to);
            (!is_own).then(|| Edge {
                from: import.from.clone(),
                to,
                is_test: import.is_test,
            })
        });
        edges.collect()
    }

    /// The module whose file has what a path names.
    fn target(&self, path: &[String]) -> ModulePath {
        let mut path = path.to_owned();
        for _ in 0..MAX_USES {
            let module = self.longest(&path);
            let name = path.get(module.len());
            let names = self.names.get(&module);
            let behind = name.and_then(|name| names?.get(name));
            let Some(behind) = behind else {
                return module;
            };
            let rest = path[module.len() + 1..].to_owned();
            path = [behind.clone(), rest].concat();
        }
        panic!("{path:?} is brought in by a circle of names");
    }

    /// The longest beginning of a path that is a module with a file.
    fn longest(&self, path: &[String]) -> ModulePath {
        let lengths = (0..=path.len()).rev();
        let mut modules = lengths.map(|length| path[..length].to_owned());
        modules
            .find(|module| self.files.contains_key(module))
            .unwrap_or_default()
    }
}

/// The module that is written as `core/base`.
fn named(module: &str) -> ModulePath {
    module.split('/').map(str::to_owned).collect()
}

/// `store/ctx.rs` is `store::ctx`; `lib.rs` is the root.
fn module_of(path: &Path) -> ModulePath {
    let without = path.with_extension("");
    let parts = without
        .iter()
        .map(|part| part.to_string_lossy().into_owned());
    let mut module: ModulePath = parts.collect();
    let is_folder = module.last().is_some_and(|name| name == "mod");
    let is_root = module == ["lib"] || module == ["main"];
    if is_folder || is_root {
        module.pop();
    }
    module
}

/// Reads the tokens of one file.
struct Reader<'a> {
    imports: &'a mut ModuleImports,
    /// The modules that are compiled for tests only.
    tests: &'a mut BTreeSet<ModulePath>,
    file: ModulePath,
    /// The module the tokens are in, which may be one within the file.
    module: ModulePath,
    is_test: bool,
}

impl Reader<'_> {
    fn read(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        let mut at = 0;
        // Attributes stand before the item that they are of.
        let mut is_for_tests = false;
        while at < tokens.len() {
            let rest = &tokens[at..];
            if let Some(attribute) = attribute(rest) {
                is_for_tests |= attribute == "cfg(test)";
                at += 2;
                continue;
            }
            at += match word(rest, 0).as_deref() {
                Some("mod") => self.read_module(rest, is_for_tests),
                Some("use") => self.read_use(rest),
                Some("crate" | "super" | "self") => self.read_path(rest),
                Some("pub") => {
                    at += 1;
                    // `pub(crate)` is no path.
                    at += usize::from(group(&tokens[at..], Delimiter::Parenthesis).is_some());
                    continue;
                }
                _ => {
                    if let TokenTree::Group(group) = &rest[0] {
                        self.read(&group.stream());
                    }
                    1
                }
            };
            is_for_tests = false;
        }
    }

    /// `mod name;` or `mod name { .. }`: how many tokens it has.
    fn read_module(&mut self, tokens: &[TokenTree], is_for_tests: bool) -> usize {
        let Some(name) = word(tokens, 1) else {
            return 1;
        };
        self.module.push(name);
        if is_for_tests {
            self.tests.insert(self.module.clone());
        }
        let within = group(&tokens[2..], Delimiter::Brace);
        if let Some(within) = &within {
            let was_test = self.is_test;
            self.is_test |= is_for_tests;
            self.read(within);
            self.is_test = was_test;
        }
        self.module.pop();
        2 + usize::from(within.is_some())
    }

    /// `use path;`, with lists in braces: how many tokens it has.
    fn read_use(&mut self, tokens: &[TokenTree]) -> usize {
        let is_end = |token: &TokenTree| token.to_string() == ";";
        let end = tokens.iter().position(is_end).unwrap_or(tokens.len());
        let mut paths = Vec::new();
        use_paths(&tokens[1..end], &[], &mut paths);
        for (path, name) in paths {
            let is_relative = path.first().is_some_and(|word| self.has_child(word));
            let absolute = match is_relative {
                true => Some([self.module.clone(), path].concat()),
                false => self.absolute(path),
            };
            let Some(absolute) = absolute else {
                continue;
            };
            self.add(absolute.clone());
            let names = self.imports.names.entry(self.module.clone());
            names.or_default().insert(name, absolute);
        }
        end
    }

    /// A path that is no `use`: how many tokens it has.
    fn read_path(&mut self, tokens: &[TokenTree]) -> usize {
        let (path, length) = simple_path(tokens);
        if path.len() > 1
            && let Some(absolute) = self.absolute(path)
        {
            self.add(absolute);
        }
        length
    }

    fn add(&mut self, to: Vec<String>) {
        self.imports.paths.push(Import {
            from: self.file.clone(),
            to,
            is_test: self.is_test,
        });
    }

    fn has_child(&self, name: &str) -> bool {
        let mut child = self.module.clone();
        child.push(name.to_owned());
        self.imports.files.contains_key(&child)
    }

    /// The path from the crate's root on; none if it leads to another crate.
    fn absolute(&self, path: Vec<String>) -> Option<Vec<String>> {
        let mut words = path.into_iter().peekable();
        let mut base = match words.next()?.as_str() {
            "crate" => Vec::new(),
            "self" => self.module.clone(),
            "super" => parent(&self.module),
            _ => return None,
        };
        while words.next_if(|word| word == "super").is_some() {
            base = parent(&base);
        }
        base.extend(words);
        Some(base)
    }
}

fn parent(module: &[String]) -> ModulePath {
    let length = module.len().saturating_sub(1);
    module[..length].to_owned()
}

/// The text of `#[..]` without spaces.
fn attribute(tokens: &[TokenTree]) -> Option<String> {
    let is_attribute = tokens[0].to_string() == "#";
    let within = is_attribute.then(|| group(&tokens[1..], Delimiter::Bracket))??;
    Some(within.to_string().replace(' ', ""))
}

fn word(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at)? {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

/// What is within the group that the tokens begin with.
fn group(tokens: &[TokenTree], delimiter: Delimiter) -> Option<TokenStream> {
    match tokens.first()? {
        TokenTree::Group(group) if group.delimiter() == delimiter => Some(group.stream()),
        _ => None,
    }
}

fn is_colons(tokens: &[TokenTree]) -> bool {
    let is_colon = |at: usize| tokens.get(at).is_some_and(|token| token.to_string() == ":");
    is_colon(0) && is_colon(1)
}

/// The words of `a::b::c` and how many tokens they are.
fn simple_path(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(next) = word(tokens, at) {
        words.push(next);
        at += 1;
        if !is_colons(&tokens[at..]) {
            break;
        }
        at += 2;
    }
    (words, at)
}

/// The paths of a `use`, each with the name it has afterwards.
fn use_paths(tokens: &[TokenTree], before: &[String], paths: &mut Vec<(Vec<String>, String)>) {
    let (words, length) = simple_path(tokens);
    let path = [before, &words].concat();
    let rest = &tokens[length..];
    if let Some(list) = group(rest, Delimiter::Brace) {
        let list: Vec<TokenTree> = list.into_iter().collect();
        for part in list.split(|token| token.to_string() == ",") {
            use_paths(part, &path, paths);
        }
        return;
    }
    let Some(last) = path.last() else {
        return;
    };
    let name = match word(rest, 0).as_deref() {
        Some("as") => word(rest, 1).unwrap_or_default(),
        _ if rest.first().is_some_and(|token| token.to_string() == "*") => "*".to_owned(),
        _ => last.clone(),
    };
    let path = match last.as_str() {
        "self" => parent(&path),
        _ => path,
    };
    paths.push((path, name));
}

#[test]
fn imports_are_found_in_lists_macros_and_modules_within_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("lib.rs", "mod a; mod b; pub use b::inner::Deep;");
    write(
        "a.rs",
        "use crate::{Deep, c::{self, D as E}}; fn f() { println!(\"{}\", super::d::g()) }",
    );
    write("b.rs", "pub(crate) mod inner; use std::fmt;");
    write(
        "b/inner.rs",
        "pub struct Deep; #[cfg(test)] mod tests { use super::super::super::a; }",
    );
    write("c.rs", "pub use crate::d::D;");
    write("d.rs", "#[cfg(test)] mod tests;");
    write("d/tests.rs", "use crate::a;");
    let imports = ModuleImports::of(folder.path());
    let edges = imports.edges().into_iter().map(|edge| {
        let sign = if edge.is_test { "~" } else { "-" };
        format!("{} {sign} {}", edge.from.join("/"), edge.to.join("/"))
    });
    let edges: Vec<String> = edges.collect();
    let expected = [
        "a - b/inner",
        "a - c",
        "a - d",
        "b/inner ~ a",
        "c - d",
        "d/tests ~ a",
    ];
    assert_eq!(edges, expected);
}
