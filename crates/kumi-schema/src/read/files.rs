//! Loading a file and what it imports, each file once, circles refused.

use super::Reader;
use crate::limits::{MAX_FILE_BYTES, MAX_FILES, MAX_IMPORT_DEPTH};
use crate::loader::{LoadError, Loader, normal, too_large};
use kumi_kdl::{Document, FileId, Node, Span, did_you_mean};
use std::path::Path;

/// A file and the nodes in it.
pub(super) struct File {
    pub(super) id: FileId,
    pub(super) document: Document,
}

/// The first file, then its imports in the order in which they are first named.
pub(super) fn load_all(reader: &mut Reader, loader: &dyn Loader, root: &str) -> Vec<File> {
    let mut loading = Loading {
        loader,
        files: Vec::new(),
        chain: Vec::new(),
    };
    match bounded(loader.load(root)) {
        // Under the name by which others would import it, so that a circle through it is seen at once.
        Ok(text) => loading.add(reader, normal(Path::new(root)), text),
        Err(error) => {
            let mut diagnostic =
                kumi_kdl::Diagnostic::without_place(format!("{root:?} cannot be read: {error}"));
            diagnostic.file = root.to_owned();
            reader.errors.push_with(|| diagnostic);
        }
    }
    loading.files
}

struct Loading<'l> {
    loader: &'l dyn Loader,
    files: Vec<File>,
    /// The files being read, from the first one to the one whose imports are followed.
    chain: Vec<String>,
}

impl Loading<'_> {
    fn add(&mut self, reader: &mut Reader, name: String, text: String) {
        let id = reader.sources.add(name.clone(), text.into());
        let document = kumi_kdl::parse(&reader.sources, id, &mut reader.errors);
        reader.incomplete |= misses_declarations(&document);
        let imports = imports(reader, &document);
        let index = self.files.len();
        self.files.push(File { id, document });
        debug_assert_eq!(index, id.0 as usize);
        self.chain.push(name.clone());
        for (import, span) in imports {
            if reader.errors.is_full() {
                reader.incomplete = true;
                break;
            }
            self.follow(reader, &name, &import, span);
        }
        self.chain.pop();
    }

    fn follow(&mut self, reader: &mut Reader, from: &str, import: &str, span: Span) {
        let name = match self.loader.resolve(from, import) {
            Ok(name) => name,
            Err(error) => {
                let message = format!("this cannot be imported: {error}");
                return reader.not_imported(span, message, None);
            }
        };
        if self.chain.contains(&name) {
            let start = self
                .chain
                .iter()
                .position(|known| *known == name)
                .unwrap_or(0);
            let mut circle = self.chain[start..].to_vec();
            circle.push(name);
            let message = format!("these files import each other: {}", circle.join(" -> "));
            let help = "put what they share into a file that imports neither";
            return reader.not_imported(span, message, Some(help.to_owned()));
        }
        if reader.sources.files().iter().any(|file| file.name == name) {
            return;
        }
        if self.chain.len() >= MAX_IMPORT_DEPTH {
            let message = format!("a chain of imports is longer than {MAX_IMPORT_DEPTH} files");
            return reader.not_imported(span, message, None);
        }
        if self.files.len() >= MAX_FILES {
            let message = format!("a schema consists of at most {MAX_FILES} files");
            return reader.not_imported(span, message, None);
        }
        match bounded(self.loader.load(&name)) {
            Ok(text) => self.add(reader, name, text),
            Err(error) => {
                let message = format!("{name:?} cannot be read: {error}");
                let help = match self.meant(&name, import) {
                    Some(meant) => format!("did you mean {meant:?}?"),
                    None => "a path is relative to the file that imports it".to_owned(),
                };
                reader.not_imported(span, message, Some(help));
            }
        }
    }

    /// An import of a file that lies where another one was looked for, under a name much like it.
    fn meant(&self, name: &str, import: &str) -> Option<String> {
        let (folder, file) = match import.rsplit_once('/') {
            Some((folder, file)) => (format!("{folder}/"), file),
            None => (String::new(), import),
        };
        let beside = self.loader.beside(name);
        // A file that cannot be read for another reason is no suggestion against itself.
        let others = beside.iter().map(|other| &**other);
        let meant = did_you_mean(file, others.filter(|&other| other != file))?;
        Some(folder + meant)
    }
}

impl Reader {
    /// Notes why a file was not read; what it declares is missing.
    fn not_imported(&mut self, span: Span, message: String, help: Option<String>) {
        self.incomplete = true;
        self.error_with(span, message, |diagnostic| diagnostic.maybe_help(help));
    }
}

/// Whether a node could not be read that may have declared a type. What stands in the block of one declares none.
fn misses_declarations(document: &Document) -> bool {
    let holds_types =
        |node: &&Node| !matches!(&*node.name.value, "message" | "enum" | "union" | "typedef");
    document.is_incomplete
        || document
            .nodes
            .iter()
            .filter(holds_types)
            .filter_map(|node| node.children.as_ref())
            .any(misses_declarations)
}

fn bounded(text: Result<String, LoadError>) -> Result<String, LoadError> {
    match text {
        Ok(text) if text.len() > MAX_FILE_BYTES => Err(too_large()),
        other => other,
    }
}

/// What a file imports: on its top level, or inside its protocol.
fn imports(reader: &mut Reader, document: &Document) -> Vec<(String, Span)> {
    let inner = document
        .nodes
        .iter()
        .filter(|node| node.name.value == "protocol")
        .flat_map(|node| node.children.iter().flat_map(|children| &children.nodes));
    let nodes: Vec<&Node> = document
        .nodes
        .iter()
        .chain(inner)
        .filter(|node| node.name.value == "import")
        .collect();
    let mut imports = Vec::new();
    for node in nodes {
        reader.properties(node, &[]);
        reader.no_children(node);
        let path = reader.text_argument(node, "import", "\"common.kdl\"");
        // A path that was refused names a file that is not read.
        reader.incomplete |= node.arguments.len() != 1 || path.is_none();
        if let Some(path) = path {
            imports.push((path.value, path.span));
        }
    }
    imports
}
