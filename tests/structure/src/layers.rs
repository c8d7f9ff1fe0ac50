//! What may import what, as ARCHITECTURE.md says.

use crate::imports::{Edge, ModuleImports, ModulePath};
use crate::sources::{ROOT, source_folder};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where the last column of the picture of crates begins.
const IMPORTS_COLUMN: usize = 79;

/// What a crate may import of ours; none if it is all.
type Imports = Option<BTreeSet<String>>;

/// The picture of crates. A line names a crate, and has in its last column what the crate imports after an arrow.
fn picture() -> BTreeMap<String, Imports> {
    let page = Path::new(ROOT).join("ARCHITECTURE.md");
    let page = fs::read_to_string(page).expect("a page");
    let lines = page.lines().filter_map(|line| {
        let name = line.strip_prefix("    ")?.split(' ').next()?;
        let column = line.get(IMPORTS_COLUMN..)?;
        let is_ours = name == "kumi" || name.starts_with("kumi-");
        (is_ours && !name.contains('/')).then(|| (name.to_owned(), imports(column)))
    });
    lines.collect()
}

/// `a core; driver -> unison, common; on any Redis` is `kumi-unison` and `kumi-common`.
fn imports(column: &str) -> Imports {
    let Some((_, after)) = column.split_once("-> ") else {
        assert_eq!(column, "imports nothing of ours");
        return Some(BTreeSet::new());
    };
    let names = after.split(';').next().unwrap_or_default();
    if names.starts_with("all") {
        return None;
    }
    let names = names.split(", ").map(|name| format!("kumi-{name}"));
    Some(names.collect())
}

fn metadata() -> serde_json::Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let arguments = ["metadata", "--locked", "--no-deps", "--format-version", "1"];
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(ROOT)
        .output()
        .expect("cargo runs the tests");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn crates_import_what_the_picture_says() {
    let mut picture = picture();
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("a list");
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        let dependencies = package["dependencies"].as_array().expect("a list");
        let ours = |dependency: &&serde_json::Value| {
            let name = dependency["name"].as_str().unwrap_or_default();
            name == "kumi" || name.starts_with("kumi-")
        };
        let names = |of_tests: bool| -> BTreeSet<String> {
            let chosen = dependencies
                .iter()
                .filter(ours)
                .filter(|dependency| (dependency["kind"] == "dev") == of_tests);
            let names = chosen.filter_map(|dependency| dependency["name"].as_str());
            names.map(str::to_owned).collect()
        };
        for of_tests in [false, true] {
            let is_imported = names(of_tests).contains("kumi-bench");
            assert!(!is_imported, "{name} imports kumi-bench");
        }
        let path = package["manifest_path"].as_str().expect("a path");
        if !path.ends_with(&format!("crates/{name}/Cargo.toml")) {
            continue;
        }
        let allowed = picture.remove(name);
        let allowed = allowed.unwrap_or_else(|| panic!("ARCHITECTURE.md: no {name}"));
        if let Some(allowed) = allowed {
            assert_eq!(names(false), allowed, "{name}");
        }
    }
    assert!(picture.is_empty(), "no such crates: {picture:?}");
}

/// The layers of a crate. A module imports those of its own layer and of the layers before it.
struct Layers {
    package: &'static str,
    /// The modules of each layer: `core` with all that is in it, or `core/base` for a part of it. Modules that are not named
    /// here are one more layer, the last.
    layers: &'static [&'static [&'static str]],
    /// Modules that exist for tests, and are free.
    exempt: &'static [&'static str],
    /// A circle of files that may be larger than others; ARCHITECTURE.md says why.
    excepted: &'static [&'static str],
}

const LAYERS: &[Layers] = &[
    Layers {
        package: "kumi",
        layers: &[],
        exempt: &[],
        excepted: &[],
    },
    Layers {
        package: "kumi-bench",
        layers: &[],
        exempt: &[],
        excepted: &[],
    },
    Layers {
        package: "kumi-cluster",
        layers: &[
            &["core/base"],
            &["core/state"],
            &["core/wire"],
            &["core/protocol"],
            &["core/membership/parts"],
            &["core/membership"],
            &["core/views"],
            &["driver"],
        ],
        exempt: &["sim"],
        excepted: &[],
    },
    Layers {
        package: "kumi-common",
        layers: &[],
        exempt: &[],
        excepted: &[],
    },
    Layers {
        package: "kumi-jobs",
        layers: &[&["core"], &["drawn", "error", "random"]],
        exempt: &[],
        excepted: &[],
    },
    Layers {
        package: "kumi-kdl",
        layers: &[],
        exempt: &[],
        excepted: &[],
    },
    Layers {
        package: "kumi-lua",
        layers: &[&["base"], &["vm"], &["compile"], &["libs"]],
        exempt: &[],
        excepted: &[],
    },
    Layers {
        package: "kumi-muf",
        layers: &[
            &["core"],
            &["error", "fault", "payload"],
            &["discovery", "handler", "traffic"],
            &["driver"],
        ],
        exempt: &[],
        excepted: &["tap.rs"],
    },
    Layers {
        package: "kumi-node",
        layers: &[&["config"], &["trust"], &["core"], &["http"], &["driver"]],
        exempt: &[],
        excepted: &[],
    },
    Layers {
        package: "kumi-redis",
        layers: &[&["core"], &["driver"]],
        exempt: &[],
        excepted: &[],
    },
    Layers {
        package: "kumi-resp",
        layers: &[],
        exempt: &[],
        excepted: &[],
    },
    Layers {
        package: "kumi-schema",
        layers: &[],
        exempt: &[],
        excepted: &[],
    },
    Layers {
        package: "kumi-server",
        layers: &[&["base"], &["net"], &["files"], &["front"]],
        exempt: &["fuzzing"],
        excepted: &[],
    },
    Layers {
        package: "kumi-store",
        layers: &[
            &["base"],
            &["types"],
            &["config"],
            &["data"],
            &["engine"],
            &["commands"],
        ],
        exempt: &["fuzzing", "reference", "support", "testing"],
        // A row names a function of `Ctx`, which holds the store, which holds the rows.
        excepted: &[
            "engine/acl.rs",
            "engine/command.rs",
            "engine/host.rs",
            "engine/script.rs",
            "engine/script/api.rs",
            "engine/script/bridge.rs",
            "engine/script/library.rs",
            "engine/script/run.rs",
            "engine/script/watch.rs",
            "engine/store.rs",
            "engine/store/ctx.rs",
            "engine/store/delivery.rs",
            "engine/store/parts.rs",
            "engine/store/persistence.rs",
            "engine/store/snapshot.rs",
            "engine/store/tracking.rs",
        ],
    },
    Layers {
        package: "kumi-unison",
        layers: &[
            &["text", "trace"],
            &["tls", "validation", "wire"],
            &["error", "identity", "payload"],
            &["core"],
            &["driver"],
        ],
        exempt: &[],
        excepted: &[],
    },
];

/// How many files of one folder may import each other in a circle.
const MAX_CIRCLE: usize = 5;

#[test]
fn modules_import_only_the_layers_before_their_own() {
    let wrong = LAYERS.iter().flat_map(|layers| {
        let imports = ModuleImports::of(&source_folder(layers.package));
        for module in layers.layers.iter().copied().flatten() {
            let has_file = imports.contains(module);
            assert!(has_file, "{}: no module {module}", layers.package);
        }
        wrong_imports(layers, &imports)
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn no_circle_of_files_leaves_its_folder_or_is_large() {
    let wrong: Vec<String> = LAYERS.iter().flat_map(wrong_circles).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// One import of each layer by a file of the layer before it is found in every crate that has layers.
#[test]
fn an_import_put_the_wrong_way_is_found() {
    for layers in LAYERS.iter().filter(|layers| layers.layers.len() > 1) {
        let mut imports = ModuleImports::of(&source_folder(layers.package));
        let before = wrong_imports(layers, &imports).len();
        let modules: Vec<ModulePath> = imports.modules().cloned().collect();
        let of_layer = |rank: usize| {
            let mut modules = modules.iter();
            // The last part of a path is a file's, so that neither of the two is above the other.
            let found = modules.rfind(|module| layers.rank(module) == Some(rank));
            found.expect("a layer has files")
        };
        for next in 1..layers.layers.len() {
            let (from, to) = (of_layer(next - 1), of_layer(next));
            imports.add(from, to);
            let after = wrong_imports(layers, &imports).len();
            let text = format!("{}: {from:?} imports {to:?}", layers.package);
            assert_eq!(after, before + next, "{text}");
        }
    }
}

/// The imports of a layer by one before it.
fn wrong_imports(layers: &Layers, imports: &ModuleImports) -> Vec<String> {
    let edges = imports.edges().into_iter();
    let wrong = edges.filter(|edge| {
        let (from, to) = (layers.rank(&edge.from), layers.rank(&edge.to));
        matches!((from, to), (Some(from), Some(to)) if from < to)
    });
    let text = |edge: Edge| {
        let (from, to) = (imports.file(&edge.from), imports.file(&edge.to));
        let package = layers.package;
        format!("{package}: {} imports {}", from.display(), to.display())
    };
    wrong.map(text).collect()
}

impl Layers {
    /// Which layer a module belongs to; none if it is free.
    fn rank(&self, module: &[String]) -> Option<usize> {
        let top = module.first()?.as_str();
        if self.exempt.contains(&top) {
            return None;
        }
        let is_in = |name: &&str| {
            let mut parts = name.split('/').zip(1..);
            parts.all(|(part, length)| module.get(length - 1).is_some_and(|word| word == part))
        };
        let layer = self.layers.iter().position(|layer| layer.iter().any(is_in));
        // `core.rs` hands out what is in its folders, so it belongs to the last layer among them.
        let path = module.join("/") + "/";
        let is_above = |name: &&str| name.starts_with(&path);
        let above = || {
            self.layers
                .iter()
                .rposition(|layer| layer.iter().any(is_above))
        };
        Some(layer.or_else(above).unwrap_or(self.layers.len()))
    }
}

/// The circles of a crate's files, those of tests aside, that go through several folders or through many files.
fn wrong_circles(layers: &Layers) -> Vec<String> {
    let imports = ModuleImports::of(&source_folder(layers.package));
    let mut graph: BTreeMap<ModulePath, BTreeSet<ModulePath>> = BTreeMap::new();
    for edge in imports.edges() {
        let is_free = [&edge.from, &edge.to].map(|module| layers.rank(module).is_none());
        if !edge.is_test && !is_free.contains(&true) {
            graph.entry(edge.to.clone()).or_default();
            graph.entry(edge.from).or_default().insert(edge.to);
        }
    }
    let circles = circles(&graph).into_iter();
    let wrong = circles.filter_map(|circle| {
        let files: Vec<String> = circle
            .iter()
            .map(|module| imports.file(module).display().to_string())
            .filter(|file| !layers.excepted.contains(&file.as_str()))
            .collect();
        let folders: BTreeSet<&[String]> = circle
            .iter()
            .filter(|module| {
                !layers
                    .excepted
                    .contains(&&*imports.file(module).to_string_lossy())
            })
            .map(|module| &module[..module.len() - 1])
            .collect();
        let is_wrong = folders.len() > 1 || files.len() > MAX_CIRCLE;
        let text = || format!("{}: a circle of {}", layers.package, files.join(", "));
        is_wrong.then(text)
    });
    wrong.collect()
}

/// The groups of more than one module that reach each other.
fn circles(graph: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> Vec<BTreeSet<&ModulePath>> {
    let reached: BTreeMap<_, _> = graph
        .keys()
        .map(|from| (from, reach(graph, from)))
        .collect();
    let mut circles = BTreeSet::new();
    for (from, reached_from) in &reached {
        let back = reached_from
            .iter()
            .filter(|to| reached[**to].contains(*from));
        let circle: BTreeSet<&ModulePath> = back.copied().collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// What can be reached from a module by one import or more.
fn reach<'a>(
    graph: &'a BTreeMap<ModulePath, BTreeSet<ModulePath>>,
    from: &ModulePath,
) -> BTreeSet<&'a ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&ModulePath> = graph[from].iter().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(&graph[module]);
        }
    }
    reached
}
