//! Imports, one after the other per tenant and side by side between tenants.
//!
//!     cargo run -p kumi-jobs --example import [redis://localhost/?queue=import]

use kumi_jobs::{Context, Jobs, Task, TaskError, Worker};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

#[derive(Serialize, Deserialize)]
struct ImportFile {
    tenant: String,
    number: u32,
}

impl Task for ImportFile {
    const TYPE: &'static str = "import_file";
    type Output = ();
}

/// What was imported, per tenant.
type Imported = Arc<Mutex<BTreeMap<String, Vec<u32>>>>;

async fn import(file: ImportFile, cx: Context<Imported>) -> Result<(), TaskError> {
    // Another tenant's import may run in between; one of the same tenant may not.
    tokio::task::yield_now().await;
    let mut imported = cx
        .state()
        .lock()
        .map_err(|_| TaskError::abort("poisoned"))?;
    imported.entry(file.tenant).or_default().push(file.number);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let jobs = match std::env::args().nth(1) {
        Some(url) => Jobs::connect(&url).await?,
        None => Jobs::memory(),
    };
    let mut handles = Vec::new();
    for number in 0..5 {
        for tenant in ["blue", "green", "red"] {
            let tenant = tenant.to_owned();
            let key = tenant.clone();
            let file = ImportFile { tenant, number };
            handles.push(jobs.enqueue(file).serial(&key).await?);
        }
    }
    let imported = Imported::default();
    let done = async {
        for handle in &handles {
            handle.result().await.expect("it is imported");
        }
    };
    Worker::new(&jobs, imported.clone())
        .handle(import)
        .run_until(done)
        .await?;
    for (tenant, numbers) in imported.lock().expect("no panic").iter() {
        println!("{tenant}: {numbers:?}");
        assert!(numbers.is_sorted());
    }
    Ok(())
}
